// SPDX-License-Identifier: Apache-2.0
#include "collector/base/host.h"

#include "collector/base/idle.h"

namespace gpuprof {

GPUPROF_IDLE_DATA constinit Host g_host;

}  // namespace gpuprof
