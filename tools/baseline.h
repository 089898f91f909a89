// SPDX-License-Identifier: Apache-2.0
// A directory of runs that were found good, for comparing the next one with: each in a folder of
// its own, 0001, 0002, ..., the last being what counts.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace gpuprof {

// The newest run of `directory`; empty: there is none.
std::string newest_baseline(const std::string& directory);

// So many runs stay. The comparison needs the last one; the others are there to go back to.
inline constexpr size_t kRunsKept = 10;

struct AddedRun {
  std::string folder;
  std::vector<std::string> removed;  // folders of older runs
};

// Copies the files as the next run: complete, or absent. Where a name is taken, all files of its
// folder are renamed alike, so that a ring stays that of its part. Then removes runs beyond
// kRunsKept, oldest first: those that were added so, and that hold nothing but what was. Throws
// Failure.
AddedRun add_baseline(const std::string& directory, const std::vector<std::string>& files);

}  // namespace gpuprof
