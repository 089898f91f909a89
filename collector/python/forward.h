// SPDX-License-Identifier: Apache-2.0
// Calls of PyTorch's modules (nn.Module) from outside of any: each is a mark of the step source
// `forward`. No hook of PyTorch's and no code in Python: those would slow down each call of each
// module, and torch.compile would compile the program again. Instead the slot `tp_call` of
// nn.Module and the classes that derive from it leads to a function of ours, which notes the
// outermost call and goes on to the slot's own function. Where the slot is not where it is expected
// (or this Python has no GIL) there are no such marks.
#pragma once

#include "collector/python/python_api.h"

namespace gpuprof {

// When a session starts in a Python process: classes are looked for, on Python's main thread,
// or where another thread's audit events come first.
void forward_session_begins(const PythonApi& python);
// About once a second, on the drain thread, while it is open whether `forward` is the source: for
// classes that were made since.
void forward_tick();
// With the GIL, at an audit event. False: an exception is set, which a signal's handler raised.
bool forward_audit(const char* event);

}  // namespace gpuprof
