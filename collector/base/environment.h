// SPDX-License-Identifier: Apache-2.0
// The program's environment as it was when the session was configured. The program may change its
// own at any time, on any thread, and the C library frees what it has replaced.
#pragma once

namespace gpuprof {

// On the program's thread, before others of ours run; once a session.
void keep_environment();
// NAME=VALUE, the last one null. Any thread; valid until the process ends or forks.
char* const* kept_environment();

}  // namespace gpuprof
