// SPDX-License-Identifier: Apache-2.0
// What every program of ours does around its work.
#pragma once

#include <functional>

namespace gpuprof {

// Runs `work`, which returns the exit code, and flushes standard output. What it throws becomes one
// line on standard error and the code of a wrong use; of a closed pipe, a quiet end.
int run_guarded(const std::function<int()>& work);

}  // namespace gpuprof
