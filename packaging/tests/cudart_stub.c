// SPDX-License-Identifier: Apache-2.0
// As much of a CUDA runtime as packaging/tests/program.py calls, linked to nothing: it loads with
// any glibc, also one that is too old for the simulated CUDA stack.
typedef int Error;
typedef unsigned long Size;

static Size next_address = 0x700000000000;

Error cudaMalloc(void** out, Size bytes) {
  *out = (void*)next_address;
  next_address += (bytes + 511) / 512 * 512;
  return 0;
}
Error cudaFree(void* address) {
  (void)address;
  return 0;
}
Error cudaMemset(void* address, int value, Size bytes) {
  return address && value >= 0 && bytes ? 0 : 1;
}
Error cudaDeviceSynchronize(void) { return 0; }
