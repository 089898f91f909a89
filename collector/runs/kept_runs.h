// SPDX-License-Identifier: Apache-2.0
// Which runs GPUPROF_KEEP lets stay, and the removal of one that goes. Nothing is followed and
// nothing named by a path: a run is an entry of the output directory's descriptor, a file one of
// the run's. Drain thread, but for choose_runs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "formats/core/settings.h"

namespace gpuprof {

// A run that changed later stays: another of its processes may be about to begin.
inline constexpr uint64_t kRecentNs = 300'000'000'000;
inline constexpr uint32_t kMostRunFiles = 20000;  // a folder with more stays

struct RunEntry {
  char name[256];
  uint64_t changed_ns;  // the newest change of a file of ours: CLOCK_REALTIME
  uint64_t bytes;       // on disk, of files of ours
  bool stays;           // it is this process's, or the one that `latest` names
  bool goes;            // choose_runs() says so
};

// Orders them, newest first, and fills in `goes`.
void choose_runs(RunEntry* runs, size_t count, const KeepSpec& keep, uint64_t now_ns);

// False: entry `run.name` of the directory `above` is no folder of this user's alone, on the same
// file system, with files of ours.
bool look_at_run(int above, RunEntry& run);

enum class Removal {
  done,        // of its files none of ours is left; the folder, too, unless something else is in it
  part,        // the time is over
  kept,        // it is in use, or changed lately, or is no run any more
  impossible,  // no lock can be had here: errno tells
};

struct Removed {
  uint64_t files, bytes;
};

// Removes files of ours from the run, and then its folder, for `budget_ns`, which is less than who
// wants the lock waits for. Not a run whose lock somebody has, of which a process lives, or that
// changed after `now_ns` - kRecentNs. Adds to `removed`.
Removal remove_run(int above, const RunEntry& run, uint64_t now_ns, uint64_t budget_ns,
                   Removed& removed);

}  // namespace gpuprof
