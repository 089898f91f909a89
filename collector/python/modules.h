// SPDX-License-Identifier: Apache-2.0
// Calls of PyTorch's modules (nn.Module) in the window, by its hooks for all of them. The hooks are
// there during windows only: each of them makes every call of a module a little slower.
#pragma once

#include "collector/python/python_api.h"

namespace gpuprof {

// When a session starts in a Python process.
void modules_session_begins(const PythonApi& python);
// When a window begins and ends, on any thread, with or without the GIL: the hooks come and go as
// soon as a thread of Python's has it.
void modules_begin();
void modules_end();
// With the GIL: now. False: an exception is set, which a signal's handler raised meanwhile.
bool modules_settle();

}  // namespace gpuprof
