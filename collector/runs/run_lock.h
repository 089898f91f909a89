// SPDX-License-Identifier: Apache-2.0
// A run in use: each of its processes has a shared lock (flock) on the run's folder, from when it
// opens the folder until it ends. Whoever removes files of a run has the lock alone meanwhile
// (remove_run). So no process writes into a folder that is being removed.
#pragma once

#include <cstddef>

namespace gpuprof {

// run_directory().open(), and the lock. A folder that is removed at that moment is waited for, 2 s
// at most, and made again. Without a lock, as on a file system that has none, the run goes on:
// there nobody can remove it either. False: `why` says what is wrong.
bool open_run_directory(const char* path, char* why, size_t why_size);

// The lock again, if the program has closed it with descriptors that it does not know. Drain
// thread.
void keep_run_locked();

}  // namespace gpuprof
