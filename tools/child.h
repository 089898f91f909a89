// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace gpuprof {

// Starts `command` (found through PATH) with `environment` (NAME=VALUE), waits for it and returns
// what a shell would: its exit code, 128 + signal, 127 when it is not found, 126 when it cannot be
// executed (the last two with one line on standard error). While it runs, signals that someone
// sends to this process are passed on; those of the terminal reach the program by themselves.
int run_child(const std::vector<std::string>& command, const std::vector<std::string>& environment);

}  // namespace gpuprof
