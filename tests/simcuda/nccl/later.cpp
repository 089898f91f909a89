// SPDX-License-Identifier: Apache-2.0
// Functions of NCCL 2.29 and 2.30 that PyTorch 2.15 links and the tests do not use. Only the
// library in lib_nccl2_30 has them.
#include <nccl.h>

#include "tests/simcuda/core/refused.h"

extern "C" {

#define SIM_REFUSED(name) SIMCUDA_REFUSED(ncclResult_t, name, ncclInvalidUsage)
SIM_REFUSED(ncclCommGetUniqueId)
SIM_REFUSED(ncclCommGrow)
SIM_REFUSED(ncclCommMemStats)
SIM_REFUSED(ncclCommResume)
SIM_REFUSED(ncclCommRevoke)
SIM_REFUSED(ncclCommSuspend)
SIM_REFUSED(ncclGetLsaMultimemDevicePointer)
SIM_REFUSED(ncclGetPeerDevicePointer)
SIM_REFUSED(ncclPutSignal)
SIM_REFUSED(ncclSignal)
SIM_REFUSED(ncclWaitSignal)
SIM_REFUSED(ncclWinGetUserPtr)
#undef SIM_REFUSED

}  // extern "C"
