// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/input.h"

namespace CLI {
class App;
}

namespace gpuprof {

// Reads all inputs into one trace, showing progress. What is wrong with inputs of which something
// could be read is said on standard error, a line for each file. Throws Failure when nothing could.
Input load_inputs(const std::vector<std::string>& paths, const JobChoice& choice = {});
// The same, without early windows of processes that came to the window of their schedule. A line on
// standard error says so, here and below.
Input load_windows(const std::vector<std::string>& paths, const JobChoice& choice = {});
// The same, for figures of steps: also without windows that go by the clock beside others of the
// process (analysis/left_out_windows.h).
Input load_steps(const std::vector<std::string>& paths, const JobChoice& choice = {});
// Whether the process's rank is one of `ranks`, as --ranks names them; of one without a rank it is
// 0, as in reports. Throws Failure where that is no list of ranks.
bool is_of_ranks(const std::string& ranks, const Process& process);
// Throws Failure where no process is of these ranks; it names those that are there.
void check_ranks(const std::string& ranks, const Trace& trace);
// Throws Failure where `output` is one of the input's files, or a directory in which traces that
// were read lie: names may meet there, though not those of dumps.
void refuse_overwriting_inputs(std::string_view command, const Input& input,
                               const std::string& output);
// --job and --attempt.
void add_job_choice(CLI::App& app, JobChoice& choice);

}  // namespace gpuprof
