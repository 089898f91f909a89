// SPDX-License-Identifier: Apache-2.0
#include "collector/base/environment.h"

#include <cstring>

#include "collector/base/fork.h"
#include "collector/base/os.h"
#include "formats/core/byte_buffer.h"

extern char** environ;

namespace gpuprof {
namespace {

struct Kept {
  PodVector<char> text;
  PodVector<char*> variables;
};
constinit Immortal<Kept> g_kept;

// Of the array first, and quickly: it moves when another thread sets a variable, texts do not.
bool copy_variables() {
  PodVector<char*>& variables = g_kept->variables;
  for (char* const* entry = environ; entry && *entry; ++entry) {
    if (!variables.push_back(*entry)) return false;
  }
  return variables.push_back(nullptr);
}

bool copy_text() {
  PodVector<char>& text = g_kept->text;
  for (const char* const variable : g_kept->variables) {
    if (variable && !text.append(variable, std::strlen(variable) + 1)) return false;
  }
  char* next = text.begin();
  for (char*& variable : g_kept->variables) {
    if (!variable) break;
    variable = next;
    next += std::strlen(next) + 1;
  }
  return true;
}

void forget_environment() {
  g_kept->text.release();
  g_kept->variables.release();
}
GPUPROF_FORGET_IN_CHILD(forget_environment);

}  // namespace

void keep_environment() {
  forget_environment();
  if (!copy_variables() || !copy_text()) forget_environment();
}

char* const* kept_environment() {
  static char* const none[] = {nullptr};
  return g_kept->variables.empty() ? none : g_kept->variables.begin();
}

}  // namespace gpuprof
