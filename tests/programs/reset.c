// SPDX-License-Identifier: Apache-2.0
// Some work, and an end of its device's context, as programs of CUDA's samples end.
#include "hazard.h"

int main(void) {
  hazard_register_kernel();
  for (int i = 0; i < 200; ++i) hazard_launch(1, NULL);
  hazard_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  hazard_check(cudaDeviceReset(), "cudaDeviceReset");
  return 0;
}
