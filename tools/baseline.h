// SPDX-License-Identifier: Apache-2.0
// A directory of runs that were found good, for comparing the next one with: each in a folder of
// its own, 0001, 0002, ..., the last being what counts.
#pragma once

#include <string>
#include <vector>

namespace gpuprof {

// The newest run of `directory`; empty: there is none.
std::string newest_baseline(const std::string& directory);

// Copies the files as the next run and returns its folder: complete, or absent. Where a name is
// taken, all files of its folder are renamed alike, so that a ring stays that of its part. Throws
// Failure.
std::string add_baseline(const std::string& directory, const std::vector<std::string>& files);

}  // namespace gpuprof
