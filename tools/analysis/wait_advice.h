// SPDX-License-Identifier: Apache-2.0
// What to do about waits for the GPU: that depends on which calls wait.
#pragma once

#include <string>

#include "tools/analysis/tables.h"

namespace gpuprof::analysis {

// One sentence. By the calls that have a fair share of the time that all of them wait; empty: none
// of them is known by name.
std::string wait_advice(const Tables& tables);

}  // namespace gpuprof::analysis
