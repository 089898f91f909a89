// SPDX-License-Identifier: Apache-2.0
#include "formats/core/command_line.h"

#include "formats/core/text.h"

namespace gpuprof {

bool split_command(std::string_view text, std::string_view path, CommandLine& out,
                   const char** problem) {
  size_t used = 0;
  bool fits = true;
  const auto put = [&](char c) {
    if (used < sizeof out.memory) {
      out.memory[used++] = c;
    } else {
      fits = false;
    }
  };
  out.count = 0;
  for (size_t i = 0; i < text.size();) {
    if (is_blank(text[i])) {
      ++i;
      continue;
    }
    if (out.count == kMostWords) {
      *problem = "has more than 64 words; put them into a script and name that";
      return false;
    }
    out.words[out.count++] = out.memory + used;
    char quote = '\0';
    for (; i < text.size() && (quote || !is_blank(text[i])); ++i) {
      const char c = text[i];
      if (quote ? c == quote : c == '\'' || c == '"') {
        quote = quote ? '\0' : c;
      } else if (c == '{' && slice(text, i, 2) == "{}") {
        for (const char p : path) put(p);
        ++i;
      } else {
        put(c);
      }
    }
    if (quote) {
      *problem = "has a quote that is not closed";
      return false;
    }
    put('\0');
  }
  out.words[out.count] = nullptr;
  if (!fits) *problem = "is too long with the dump's path in it";
  if (out.count == 0 || out.words[0][0] == '\0') {
    *problem = "names no program; as in: cp {} /archive/";
    return false;
  }
  return fits;
}

}  // namespace gpuprof
