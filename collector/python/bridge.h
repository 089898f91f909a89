// SPDX-License-Identifier: Apache-2.0
// The way into a Python process: an audit hook, set before the interpreter starts, sees what is
// imported. Once PyTorch's optimizers are there, its hook for their steps calls back into this
// library. Nothing of ours lies in the user's environment, in sys.path or in sys.modules, so -I and
// -S make no difference.
#pragma once

namespace gpuprof {

// From the library's constructor, also when it is loaded late; not from a second copy of it. Does
// nothing in a process that is no Python.
void python_watch();
// Whether there is an interpreter whose functions were found.
bool python_is_known();
// When a session starts: an interpreter that was loaded meanwhile (one that is loaded after this is
// not seen); one line for one that we do not know.
void python_session_begins();

}  // namespace gpuprof
