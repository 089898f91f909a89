// SPDX-License-Identifier: Apache-2.0
// Which files are Kineto's JSON traces, plain or gzip, by what they begin with and not by their
// names.
#pragma once

#include <string>
#include <vector>

namespace gpuprof {

// Whether a file is JSON, and not that of XLA's profiler.
bool is_kineto(const std::string& path);
// Of a file that is not, the line that says what it holds instead, and what is read. Empty: its
// contents are not known; a dump's are not.
std::string why_not_kineto(const std::string& path);
// Of the files of a directory, those that are traces. Where others have written some, not those
// that we have: they are made of the others. Likewise of those that we have, where some are each
// of a rank, not one of all ranks.
std::vector<std::string> kineto_traces(const std::vector<std::string>& files);

}  // namespace gpuprof
