// SPDX-License-Identifier: Apache-2.0
// Where CPython keeps what a walk through a running thread's frames reads. Tables serve 3.8 to
// 3.12; later releases publish it themselves (_Py_DebugOffsets, at the start of _PyRuntime).
// Offsets are bytes, of x86-64.
#pragma once

#include <cstdint>

#include "collector/python/line_table.h"

namespace gpuprof {

inline constexpr uint16_t kNoField = 0xffff;
inline constexpr uint8_t kNoForeign = 0xff;

struct PythonLayout {
  // PyThreadState
  uint16_t thread_previous, thread_interpreter;
  uint16_t thread_id;  // `native`: the kernel's id, else a pthread_t
  bool native;
  uint16_t frame;         // the innermost frame, or a _PyCFrame that has it
  uint16_t cframe_frame;  // in that; kNoField: there is none
  // A frame: PyFrameObject to 3.10, _PyInterpreterFrame from 3.11 on.
  uint16_t frame_previous, frame_code, frame_instruction;
  uint16_t frame_state;  // to 3.10: a byte, `executing` while calls of this frame run
  uint8_t executing;
  uint16_t frame_owner;     // kNoField: there is none
  uint16_t frame_entry;     // a flag, of 3.11: the first frame of a call of the evaluation loop
  uint8_t first_foreign;    // frames of this owner and above run no code; kNoForeign: all do
  bool instruction_is_int;  // an index in 2-byte units (3.10), or a byte offset; else an address
  // PyCodeObject
  uint16_t code_file, code_name, code_first_line, code_line_table;
  uint16_t code_bytes;  // where instructions begin; kNoField: in an object of their own
  LineTable lines;
  // Texts that are not ASCII only begin here; those that are, at `ascii_text`.
  uint16_t ascii_text, other_text;

  // From 3.12 on each call of the evaluation loop has a frame of its own, which runs no code.
  bool loops_have_frames() const { return first_foreign != kNoForeign; }
  uint16_t frame_bytes() const;  // up to the last field of a frame that is read
  uint16_t code_object_bytes() const;
};

// The layout of the interpreter that runs here. `version` as Py_GetVersion() gives it; `runtime`
// is &_PyRuntime, or null. False: `why` says why there is none.
bool find_python_layout(const char* version, const void* runtime, PythonLayout& out,
                        const char*& why);

}  // namespace gpuprof
