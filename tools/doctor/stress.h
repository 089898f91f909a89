// SPDX-License-Identifier: Apache-2.0
// Whether a program runs the same with the library as without: gpuprof doctor --stress.
#pragma once

#include <string>
#include <vector>

#include "tools/doctor/diagnosis.h"

namespace gpuprof {

// Runs `program` bare and in each mode (preloaded but off, armed, with the default schedule, and
// recorded as a whole), `runs` times each, in turn. Compares exit codes, standard output and error
// (less gpuprof's own lines), files in the working directory, threads, processes left over, and
// times. What differs between two bare runs is not compared, and said. Dumps go to a folder that is
// removed. A finding for each mode. SIGINT, SIGTERM and SIGHUP end the program, remove the folder
// and exit with 128 + signal. Throws Failure.
std::vector<Finding> stress(const std::vector<std::string>& program, int runs);

}  // namespace gpuprof
