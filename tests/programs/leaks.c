// SPDX-License-Identifier: Apache-2.0
// Uses the GPU, and with an argument loses a block of memory. Built with -fsanitize=address, whose
// leak check at exit stops all threads and looks at their stacks: test_sanitized.py.
#include <stdio.h>
#include <stdlib.h>

int cudaMalloc(void** memory, size_t bytes);
int cudaMemset(void* memory, int value, size_t bytes);
int cudaFree(void* memory);
int cudaDeviceSynchronize(void);

static void* volatile lost;

// The newest lies in a register or a dead part of the stack; those before it are lost for sure.
__attribute__((noinline)) static void lose(void) {
  for (int i = 0; i < 100; ++i) lost = malloc(77);
}

int main(int count, char** arguments) {
  (void)arguments;
  for (int step = 0; step < 20; ++step) {
    void* memory = NULL;
    cudaMalloc(&memory, 1000);
    cudaMemset(memory, 0, 1000);
    cudaDeviceSynchronize();
    cudaFree(memory);
  }
  if (count > 1) lose();
  puts("done");
  fflush(stdout);  // a leak ends the process without it
  return 0;
}
