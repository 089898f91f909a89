// SPDX-License-Identifier: Apache-2.0
// Whether the frames of this process's Python are where its release keeps them. One look with the
// GIL compares what is read of the running frames with what Python says. Nothing reads frames
// before.
#pragma once

#include <cstdint>

#include "collector/python/python_api.h"
#include "collector/python/sampled_frames.h"

namespace gpuprof {

enum class FramesState : uint32_t {
  off,
  wanted,   // the look is due
  looking,  // a thread takes it
  known,
};

// A session starts in a process with this interpreter. Any thread, with or without the GIL.
void frames_session_begins(const PythonApi& python);
// From an audit hook, with the GIL: the look, if it has not been taken.
void frames_look();
FramesState frames_state();
// Why Python's stacks are missing though they were asked for; "".
const char* frames_note();
[[gnu::format(printf, 1, 2)]] void frames_give_up(const char* format, ...);

// Once known.
struct KnownInterpreter {
  PythonLayout layout;
  uint64_t code_type;  // &PyCode_Type
  uint64_t oldest;     // PyThreadState of its first thread
  uint64_t address;    // PyInterpreterState
};
const KnownInterpreter& known_interpreter();
SampledFrames& sampled_frames();  // for the sampling thread alone

}  // namespace gpuprof
