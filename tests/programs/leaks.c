// SPDX-License-Identifier: Apache-2.0
// Uses the GPU, and with an argument loses a block of memory. Built with -fsanitize=address, whose
// leak check at exit stops all threads and looks at their stacks: test_sanitized.py.
#include <stdio.h>
#include <stdlib.h>

int cudaMalloc(void** memory, size_t bytes);
int cudaMemset(void* memory, int value, size_t bytes);
int cudaFree(void* memory);
int cudaDeviceSynchronize(void);
struct size {
  unsigned x, y, z;
};
int cudaLaunchKernel(const void* function, struct size grid, struct size block, void** arguments,
                     size_t shared_bytes, void* stream);
void** __cudaRegisterFatBinary(void* fat_binary);
void __cudaRegisterFunction(void** handle, const char* function, char* name, const char* same,
                            int limit, void* a, void* b, void* c, void* d, int* e);
void __cudaRegisterFatBinaryEnd(void** handle);

static void* volatile lost;

// The newest lies in a register or a dead part of the stack; those before it are lost for sure.
__attribute__((noinline)) static void lose(void) {
  for (int i = 0; i < 100; ++i) lost = malloc(77);
}

// As nvcc's code does before main.
static char kernels[50];  // stand for as many
static void register_kernels(void) {
  static struct {
    int magic, version;
    const void* data;
    void* unused;
  } fat_binary = {0x466243b1, 1, "", NULL};
  static char names[50][16];
  void** const handle = __cudaRegisterFatBinary(&fat_binary);
  for (int i = 0; i < 50; ++i) {
    snprintf(names[i], sizeof names[i], "_Z8kernel%02dPf", i);
    __cudaRegisterFunction(handle, &kernels[i], names[i], names[i], -1, NULL, NULL, NULL, NULL,
                           NULL);
  }
  __cudaRegisterFatBinaryEnd(handle);
}

int main(int count, char** arguments) {
  (void)arguments;
  const struct size one = {1, 1, 1};
  register_kernels();
  for (int step = 0; step < 20; ++step) {
    for (int i = 0; i < 50; ++i) cudaLaunchKernel(&kernels[i], one, one, NULL, 0, NULL);
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
