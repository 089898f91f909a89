// SPDX-License-Identifier: Apache-2.0
// How full a kernel's launch can make the GPU, from its shape and the device's limits.
#pragma once

#include "formats/trace/trace.h"

namespace gpuprof {

struct Occupancy {
  double blocks_per_sm = 0;  // of the whole grid, over all multiprocessors: may be above what fits
  double warps_per_sm = 0;
  int percent = 0;  // warps resident at a time over the most that a multiprocessor can hold
};

// Source of the limits: CUDA C++ Programming Guide, "Compute Capabilities". Registers are counted
// in units of 256 per warp, shared memory in units of 128 bytes. Zero where the device is not
// known.
Occupancy occupancy_of(const Shape& kernel, const dump::Device& device);

}  // namespace gpuprof
