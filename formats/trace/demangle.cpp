// SPDX-License-Identifier: Apache-2.0
#include <csetjmp>
#include <cstring>
#include <string>
#include <string_view>

#include "formats/trace/names.h"

// libstdc++'s demangler, which __cxa_demangle() calls, too: it hands the text over in pieces. Not
// in libstdc++.so; formats/CMakeLists.txt takes it from libstdc++.a. 0: all of the text came.
extern "C" int __gcclibcxx_demangle_callback(const char* mangled,
                                             void (*take)(const char* piece, size_t size, void* to),
                                             void* to);

namespace gpuprof {
namespace {

struct Output {
  char* text;
  size_t room, used;
  std::jmp_buf too_long;
};

void take_piece(const char* piece, size_t size, void* to) {
  Output& out = *static_cast<Output*>(to);
  // The demangler is C, keeps its state on the stack, and knows no other way to end early.
  if (size > out.room - out.used) std::longjmp(out.too_long, 1);
  std::memcpy(out.text + out.used, piece, size);
  out.used += size;
}

bool demangle_into(const char* mangled, Output& out) {
  if (setjmp(out.too_long)) return false;
  return __gcclibcxx_demangle_callback(mangled, take_piece, &out) == 0;
}

}  // namespace

std::string demangle(std::string_view name) {
  if (!name.starts_with("_Z") || name.size() > 4096) return std::string(name);
  const std::string mangled(name);
  std::string text(kMostDemangled * name.size(), '\0');
  Output out{text.data(), text.size(), 0, {}};
  if (!demangle_into(mangled.c_str(), out)) return mangled;
  text.resize(out.used);
  text.shrink_to_fit();
  return text;
}

}  // namespace gpuprof
