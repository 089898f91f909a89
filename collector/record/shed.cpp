// SPDX-License-Identifier: Apache-2.0
#include "collector/record/shed.h"

#include "collector/base/fork.h"

namespace gpuprof {

constinit std::atomic<uint32_t> g_shed{0};

namespace {
void forget_shed_kinds() { g_shed = 0; }
GPUPROF_FORGET_IN_CHILD(forget_shed_kinds);
}  // namespace

}  // namespace gpuprof
