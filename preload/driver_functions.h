// SPDX-License-Identifier: Apache-2.0
// cuda.h without its renaming: the table's rows bear the names of the symbols, and the header turns
// some of these into the newest version of the function.
#pragma once

#include <cuda.h>

#undef cuGetProcAddress
#undef cuMemPrefetchAsync

extern "C" {
// As they were before the versions that the header declares.
CUresult cuGetProcAddress(const char*, void**, int, cuuint64_t);
CUresult cuMemPrefetchAsync(CUdeviceptr, size_t, CUdevice, CUstream);
}
