// SPDX-License-Identifier: Apache-2.0
// Puts the Python frames of the thread that makes a call among the return addresses of its native
// stack. They take the place of the frames of CPython's evaluation loop that run them. Other
// functions of the interpreter are left out; those of extension modules stay. The frames cannot
// change: their thread is in the call, with or without the GIL. No object is referenced. The only
// function of Python's that runs here is the one that gives the thread's state.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collector/python/python_api.h"
#include "collector/python/sampled_frames.h"

namespace gpuprof {

void calling_frames_session_begins(const PythonApi& python);
// Code may have gone whose place other code has taken: names are looked up anew from here on.
void forget_calling_frames();
// `frames`: return addresses, innermost first, with their stack pointers, as unwind() gives them.
// Returns how many there are then, `size` at most. Any thread.
size_t merge_python_frames(uint64_t* frames, const uint64_t* stack_pointers, size_t count,
                           size_t size);

// The same of another thread's frames, with those of it that `reader` has read and `named`.
size_t merge_read_frames(uint64_t* frames, const uint64_t* stack_pointers, size_t count,
                         size_t size, const SampledFrames& reader, const uint64_t* named,
                         size_t named_count);

}  // namespace gpuprof
