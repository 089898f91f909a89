// SPDX-License-Identifier: Apache-2.0
// More names than a table holds, and longer ones.
//   names texts STEPS N     each step has N NVTX ranges, no two with the same text
//   names kernels STEPS N   each step launches N kernels, no two with the same name
//   names long STEPS N      the same, with names that differ from the 5,000th byte on; the last one
//                           has 70,000 bytes
// A step ends with cudaDeviceSynchronize.
//   names deep STEPS N [kill STEP | fork STEP]   each step is a range "step" with N ranges in each
//   other in it. In
//                           that step the process is killed, or a child has as many steps
#include <nvtx3/nvToolsExt.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "hazard.h"

static void register_kernels(int count, size_t padding) {
  static struct {
    int magic, version;
    const void* data;
    void* unused;
  } fat_binary = {0x466243b1, 1, "", NULL};
  void** const handle = __cudaRegisterFatBinary(&fat_binary);
  for (int i = 0; i < count; ++i) {
    const size_t pad = padding && i == count - 1 ? 70000 : padding;
    char* const name = malloc(pad + 64);
    if (name == NULL) _exit(91);
    memset(name, 'x', pad);
    snprintf(name + pad, 64, "kernel_%08d_with_a_name_of_usual_length", i);
    __cudaRegisterFunction(handle, (const char*)(size_t)(0x10000 + i), name, name, -1, NULL, NULL,
                           NULL, NULL, NULL);
  }
  __cudaRegisterFatBinaryEnd(handle);
}

static void launch_all(int count) {
  const dim3 grid = {2, 1, 1}, block = {64, 1, 1};
  void* pointer = NULL;
  void* arguments[1] = {&pointer};
  for (int i = 0; i < count; ++i) {
    hazard_check(
        cudaLaunchKernel((const void*)(size_t)(0x10000 + i), grid, block, arguments, 0, NULL),
        "cudaLaunchKernel");
  }
}

static void deep_steps(int steps, int count, const char* what, int at) {
  const struct timespec pause = {0, 5000000};
  for (int step = 0; step < steps; ++step) {
    nvtxRangePushA("step");
    for (int i = 0; i < count; ++i) nvtxRangePushA("range");
    for (int i = 0; i < count; ++i) nvtxRangePop();
    nvtxRangePop();
    nanosleep(&pause, NULL);
    if (step != at) continue;
    if (strcmp(what, "kill") == 0) raise(SIGKILL);
    const pid_t child = fork();
    if (child == 0) {
      deep_steps(steps, count, "", -1);
      exit(0);
    }
    waitpid(child, NULL, 0);
  }
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const int steps = atoi(argv[2]), count = atoi(argv[3]);
  if (strcmp(argv[1], "deep") == 0) {
    deep_steps(steps, count, argc > 5 ? argv[4] : "", argc > 5 ? atoi(argv[5]) : -1);
    return 0;
  }
  const int texts = strcmp(argv[1], "texts") == 0;
  hazard_register_kernel();
  if (!texts) register_kernels(count, strcmp(argv[1], "long") == 0 ? 5000 : 0);
  for (int step = 0; step < steps; ++step) {
    for (int i = 0; texts && i < count; ++i) {
      char text[96];
      snprintf(text, sizeof text, "request %d of step %d, with a text that no other has", i, step);
      nvtxRangePushA(text);
      nvtxRangePop();
    }
    if (texts) {
      hazard_launch(1, NULL);
    } else {
      launch_all(count);
    }
    hazard_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  return 0;
}
