// SPDX-License-Identifier: Apache-2.0
// What a code object of CPython's says of a frame that runs it: file, function and line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "collector/python/frame_layout.h"

namespace gpuprof {

struct CodeNames {
  char file[1024], function[512];
  size_t file_bytes, function_bytes;
  int line;
};

// Where fields lie that are the same in every release.
inline constexpr size_t kObjectType = 8, kObjectSize = 16, kBytesText = 32;

template <typename T>
T load(const uint8_t* at) {
  T out;
  std::memcpy(&out, at, sizeof out);
  return out;
}

// The instruction's place in its code, in bytes; < 0: before the first. `code`: the code object,
// whose address is `place`. False: it cannot be one of this code's.
bool instruction_offset(const PythonLayout& layout, uint64_t place, const uint8_t* code,
                        uint64_t instruction, int32_t& offset);

// Whether the code was made from source, not by the interpreter for itself: 3.13 runs
// `_Py_InitCleanup` around __init__, whose name and file are one text.
bool is_source(const PythonLayout& layout, const uint8_t* code);

// How memory is read. Tables are copied to `scratch` if they fit, or, where it is null, read where
// they are.
struct ObjectMemory {
  bool (*copy)(uint64_t address, void* out, size_t bytes);
  uint8_t* scratch;
  size_t scratch_bytes;
};

// `code`: a copy of the code object. False: what is there cannot be one.
bool read_names(const PythonLayout& layout, const ObjectMemory& memory, const uint8_t* code,
                int32_t offset, CodeNames& out);

// The frame as stacks in the ring have it (kPythonFrame in ring_file.h); 0: a table is full. Any
// thread.
uint64_t intern_frame(const CodeNames& names);

}  // namespace gpuprof
