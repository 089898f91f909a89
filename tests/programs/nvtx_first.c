// SPDX-License-Identifier: Apache-2.0
// A program whose first NVTX range comes before its first CUDA call; 10 more ranges after it.
#include <nvtx3/nvToolsExt.h>

#include "hazard.h"

int main(void) {
  nvtxRangePushA("before");
  nvtxRangePop();
  hazard_register_kernel();
  hazard_launch(1, NULL);
  for (int i = 0; i < 10; ++i) {
    nvtxRangePushA("after");
    hazard_launch(1, NULL);
    nvtxRangePop();
  }
  hazard_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  return 0;
}
