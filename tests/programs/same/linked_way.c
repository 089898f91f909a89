// SPDX-License-Identifier: Apache-2.0
// libcudart by linking.
#include "tests/programs/same/work.h"
#include "tests/simcuda/core/simcuda.h"

int main(void) {
  const struct same_functions functions = {
      simcuda_register_kernel, cudaMalloc, cudaFree,        cudaStreamCreate, cudaStreamSynchronize,
      cudaDeviceSynchronize,   cudaMemcpy, cudaMemsetAsync, cudaLaunchKernel,
  };
  return same_work(&functions);
}
