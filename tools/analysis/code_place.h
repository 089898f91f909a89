// SPDX-License-Identifier: Apache-2.0
// The line of the program's own code that a call comes from: the innermost frame that is not of a
// library.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/trace/stacks.h"

namespace gpuprof::analysis {

struct CodePlace {
  std::string text;  // "train.py:41 main"; empty: not known
  bool own = false;  // not in a library
};

// Whether a file is of Python's own library, or of an installed package, or no file at all: code
// that a library made ("<string>" of dataclasses, "<eval_with_key>.0" of torch.fx). What the
// program made under another name, or was typed in, is its own.
bool is_library_file(std::string_view path);

// One frame of Python, "/home/me/train.py(41): main".
CodePlace python_place(std::string_view frame);

// Several, innermost first, with ';' between.
CodePlace python_stack_place(std::string_view frames);

// A native stack. Of a program whose functions have no names "program+0x12ab", not taken for its
// own.
CodePlace native_place(const StackTable& stacks, StackIndex stack);

// Its frames of Python, innermost first, as CodePlace::text.
std::vector<std::string> python_frames(const StackTable& stacks, StackIndex stack);

// Who asked for memory: as native_place(), but never a function of an allocator's own.
CodePlace memory_place(const StackTable& stacks, StackIndex stack);

}  // namespace gpuprof::analysis
