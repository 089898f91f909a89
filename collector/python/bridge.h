// SPDX-License-Identifier: Apache-2.0
// The way into a Python process: an audit hook sees what is imported. It is added when the process
// opens a library of PyTorch's, or at the session's start. It is never added before the
// interpreter is initialized: until then Python may change the allocator that frees the entry.
// Once PyTorch's optimizers are there, its hook for their steps calls back into this library.
// Nothing of ours lies in the user's environment, in sys.path or in sys.modules, so -I and -S make
// no difference.
#pragma once

namespace gpuprof {

// When this library is loaded late, and when a session starts; not from a second copy of it. Does
// nothing in a process that is no Python, or whose interpreter is not initialized.
void python_watch();
// The program is about to open `file` (dlopen's argument). Any thread, with or without the GIL.
void python_opens(const char* file);
// Whether there is an interpreter whose functions were found.
bool python_is_known();
// When a session starts: an interpreter that was loaded meanwhile (one that is loaded after this is
// not seen); one line for one that we do not know.
void python_session_begins();

}  // namespace gpuprof
