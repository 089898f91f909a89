// SPDX-License-Identifier: Apache-2.0
#include "collector/base/host.h"

namespace gpuprof {

constinit Host g_host;

}  // namespace gpuprof
