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

// libx.so, libx.so.1.2.
bool is_shared_object(std::string_view name) {
  const size_t at = name.find(".so");
  return at != std::string_view::npos && (at + 3 == name.size() || name[at + 3] == '.');
}

// python, python3, python3.11: what it runs is the program.
bool is_python(std::string_view name) {
  constexpr std::string_view kName = "python";
  return name.starts_with(kName) &&
         name.find_first_not_of("0123456789.", kName.size()) == std::string_view::npos;
}

bool is_library_module(std::string_view path) {
  const std::string_view name = base_name(path);
  return is_shared_object(name) || is_python(name);
}

// PyTorch built where its sources are, "/opt/pytorch/torch/nn/modules/linear.py", or as its
// profiler writes it, "torch/nn/...": not each program in a folder of that name.
bool is_of_torch(std::string_view path) {
  static constexpr std::string_view kParts[] = {
      "_",    "amp/", "autograd/", "backends/", "cuda/", "distributed/", "fx/", "functional.py",
      "jit/", "nn/",  "optim/",    "profiler/", "utils/"};
  constexpr std::string_view kFolder = "torch/";
  for (size_t at = path.find(kFolder); at != std::string_view::npos;
       at = path.find(kFolder, at + 1)) {
    if (at > 0 && path[at - 1] != '/') continue;
    const std::string_view within = path.substr(at + kFolder.size());
    const auto begins = [within](std::string_view part) { return within.starts_with(part); };
    if (std::any_of(std::begin(kParts), std::end(kParts), begins)) return true;
  }
  return false;
}

// Code without a file that Python or a library made: dataclasses, torch.fx, attrs, decorator,
// NumPy.
bool is_made_by_library(std::string_view path) {
  static constexpr std::string_view kNames[] = {"<frozen",          "<built-in", "<string>",
                                                "<eval_with_key>",  "<attrs ",   "<decorator-gen-",
                                                "<__array_function"};
  return std::any_of(std::begin(kNames), std::end(kNames),
                     [path](std::string_view name) { return path.starts_with(name); });
}

// Functions that allocate for whoever called them.
bool is_allocator(const Frame& frame, const Module* module) {
  static constexpr std::string_view kFunctions[] = {
      "operator new", "std::",    "void std::",    "__gnu_cxx::",    "PyMem_",
      "PyObject_",    "_PyMem_",  "_PyObject_",    "malloc",         "calloc",
      "realloc",      "memalign", "aligned_alloc", "posix_memalign", "strdup",
      "__strdup",     "mmap",     "c10::",         "cudaMalloc",     "cuMem"};
  static constexpr std::string_view kLibraries[] = {"libc10", "libcudart.", "libcuda."};
  const auto begins = [](std::string_view text) {
    return [text](std::string_view name) { return text.starts_with(name); };
  };
  const std::string_view library = module ? base_name(module->path) : std::string_view();
  return std::any_of(std::begin(kFunctions), std::end(kFunctions), begins(frame.function)) ||
         frame.function.find("CachingAllocator") != std::string::npos ||
         std::any_of(std::begin(kLibraries), std::end(kLibraries), begins(library));
}

// The innermost frame of the program's own; without one, a place in its file, or the innermost
// frame that is not to be skipped.
template <typename Skip>
CodePlace place_of(const StackTable& stacks, StackIndex stack, const Skip& skip) {
  CodePlace first, nameless;
  if (stack == StackIndex::none) return first;
  for (const uint64_t address : stacks[stack]) {
    const Module* const module = stacks.module_of(address);
    const bool of_library = !module || is_library_module(module->path);
    if (stacks.frames(address).empty() && !of_library && nameless.text.empty()) {
      nameless.text = stacks.place(address);
    }
    for (const Frame& frame : stacks.frames(address)) {
      const bool source = !frame.file.empty();
      const bool system =
          (source && is_library_file(frame.file)) ||
          (!frame.python && ((source && frame.file.starts_with("/usr/")) || of_library));
      CodePlace place{
          source ? fmt::format("{}:{} {}", base_name(frame.file), frame.line, frame.function)
                 : frame.function,
          !system};
      if (place.own) return place;
      if (first.text.empty() && !skip(frame, module)) first = std::move(place);
    }
  }
  // Where the program's own functions have no names, the place in its file says more than a
  // library.
  return nameless.text.empty() ? first : nameless;
}

}  // namespace

bool is_library_file(std::string_view path) {
  if (path.starts_with("<")) return is_made_by_library(path);
  static constexpr std::string_view kFolders[] = {"site-packages/", "dist-packages/",
                                                  "/lib/python"};
  // Of Python's own library, where it lies elsewhere.
  static constexpr std::string_view kNames[] = {"threading.py", "runpy.py", "contextlib.py"};
  const auto in_path = [path](std::string_view mark) {
    return path.find(mark) != std::string_view::npos;
  };
  return std::any_of(std::begin(kFolders), std::end(kFolders), in_path) ||
         std::find(std::begin(kNames), std::end(kNames), base_name(path)) != std::end(kNames) ||
         is_of_torch(path);
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
  return place_of(stacks, stack, [](const Frame&, const Module*) { return false; });
}

std::vector<std::string> python_frames(const StackTable& stacks, StackIndex stack) {
  std::vector<std::string> out;
  if (stack == StackIndex::none) return out;
  for (const uint64_t address : stacks[stack]) {
    for (const Frame& frame : stacks.frames(address)) {
      if (!frame.python) continue;
      out.push_back(fmt::format("{}:{} {}", base_name(frame.file), frame.line, frame.function));
    }
  }
  return out;
}

CodePlace memory_place(const StackTable& stacks, StackIndex stack) {
  return place_of(stacks, stack, is_allocator);
}

}  // namespace gpuprof::analysis
