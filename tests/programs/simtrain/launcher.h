// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/programs/simtrain/options.h"

namespace gpuprof::simtrain {

// Starts `options.ranks` copies of this program, with the environment that torchrun gives, and
// waits. Returns the first bad exit code (128 + signal for a killed one), or 0.
int run_ranks(const Options& options, char** argv);

}  // namespace gpuprof::simtrain
