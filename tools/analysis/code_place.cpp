// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/code_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace gpuprof::analysis {
namespace {

std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1: all of it
}

}  // namespace

bool is_library_file(std::string_view path) {
  static constexpr std::string_view kMarks[] = {
      "site-packages/", "dist-packages/", "/lib/python", "<frozen",      "<built-in",
      "/torch/",        "threading.py",   "runpy.py",    "contextlib.py"};
  return path.starts_with("torch/") ||
         std::any_of(std::begin(kMarks), std::end(kMarks), [path](std::string_view mark) {
           return path.find(mark) != std::string_view::npos;
         });
}

CodePlace python_place(std::string_view frame) {
  while (!frame.empty() && frame.front() == ' ') frame.remove_prefix(1);
  const size_t open = frame.rfind("(", frame.rfind("): "));
  const size_t close = frame.find("): ", open == std::string_view::npos ? 0 : open);
  if (open == std::string_view::npos || close == std::string_view::npos) return {};
  const std::string_view path = frame.substr(0, open);
  return {fmt::format("{}:{} {}", base_name(path), frame.substr(open + 1, close - open - 1),
                      frame.substr(close + 3)),
          !is_library_file(path)};
}

CodePlace python_stack_place(std::string_view frames) {
  CodePlace first;
  while (!frames.empty()) {
    const size_t end = std::min(frames.find(';'), frames.size());
    CodePlace place = python_place(frames.substr(0, end));
    if (place.own) return place;
    if (first.text.empty()) first = std::move(place);
    frames.remove_prefix(std::min(end + 1, frames.size()));
  }
  return first;
}

CodePlace native_place(const StackTable& stacks, StackIndex stack) {
  CodePlace first;
  if (stack == StackIndex::none) return first;
  for (const uint64_t address : stacks[stack]) {
    for (const Frame& frame : stacks.frames(address)) {
      const bool source = !frame.file.empty();
      const Module* const module = stacks.module_of(address);
      const bool system =
          (source && is_library_file(frame.file)) ||
          (!frame.python && ((source && frame.file.starts_with("/usr/")) || !module ||
                             module->path.find(".so") != std::string::npos));
      CodePlace place{
          source ? fmt::format("{}:{} {}", base_name(frame.file), frame.line, frame.function)
                 : frame.function,
          !system};
      if (place.own) return place;
      if (first.text.empty()) first = std::move(place);
    }
  }
  return first;
}

}  // namespace gpuprof::analysis
