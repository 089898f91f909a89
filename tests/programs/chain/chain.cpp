// SPDX-License-Identifier: Apache-2.0
// Calls of every kind that can have a stack, each from a chain of functions whose names are known;
// part of it through a library, part of it inlined.
// usage: chain ROUNDS [kill]     kill: ends itself by SIGKILL after the last round
//        chain ROUNDS many       instead: ROUNDS launches, each from another chain of calls
#include <nccl.h>
#include <signal.h>

#include "tests/programs/chain/chain_library.h"
#include "tests/programs/hazard.h"

// Keeps a call from becoming a jump, which would leave no frame.
#define KEEP_FRAME __asm__ volatile("")

namespace chain {
namespace {

float* g_memory = nullptr;
ncclComm_t g_communicator = nullptr;

[[gnu::noinline]] void launch_kernel() {
  hazard_launch(1, nullptr);
  KEEP_FRAME;
}

[[gnu::always_inline]] inline void inlined_layer() {
  launch_kernel();
  KEEP_FRAME;
}

struct Model {
  [[gnu::noinline]] void forward(int layer) {
    if (layer > 0) {
      forward(layer - 1);
    } else {
      inlined_layer();
    }
    KEEP_FRAME;
  }
};

[[gnu::noinline]] void allocate() {
  void* memory = nullptr;
  hazard_check(cudaMalloc(&memory, 4096), "cudaMalloc");
  g_memory = static_cast<float*>(memory);
  KEEP_FRAME;
}

[[gnu::noinline]] void reduce_gradients() {
  if (ncclAllReduce(g_memory, g_memory, 16, ncclFloat, ncclSum, g_communicator, nullptr) !=
      ncclSuccess) {
    _exit(91);
  }
  KEEP_FRAME;
}

[[gnu::noinline]] void wait_for_gpu() {
  hazard_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  KEEP_FRAME;
}

[[gnu::noinline]] void train_step() {
  allocate();
  Model().forward(2);
  chain_through_library(&reduce_gradients);
  hazard_check(cudaFree(g_memory), "cudaFree");
  wait_for_gpu();
  KEEP_FRAME;
}

// At each level one of two places calls the next: a bit of the number each.
[[gnu::noinline]] void descend(unsigned number, int levels) {
  if (levels == 0) {
    launch_kernel();
  } else if (number & 1) {
    descend(number >> 1, levels - 1);
    KEEP_FRAME;
  } else {
    descend(number >> 1, levels - 1);
    __asm__ volatile("nop");
  }
  KEEP_FRAME;
}

void launch_from_everywhere(unsigned launches) {
  constexpr int kLevels = 160;
  for (unsigned i = 0; i < launches; ++i) {
    descend(i, kLevels);
    if (i % 1000 == 999) wait_for_gpu();
  }
  wait_for_gpu();
}

void make_communicator() {
  ncclUniqueId id{};
  if (ncclGetUniqueId(&id) != ncclSuccess) _exit(92);
  if (ncclCommInitRank(&g_communicator, 1, id, 0) != ncclSuccess) _exit(93);
}

}  // namespace
}  // namespace chain

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 1;
  hazard_register_kernel();
  if (argc > 2 && std::strcmp(argv[2], "many") == 0) {
    chain::launch_from_everywhere(static_cast<unsigned>(rounds));
    return 0;
  }
  chain::make_communicator();
  for (int i = 0; i < rounds; ++i) chain::train_step();
  if (argc > 2 && std::strcmp(argv[2], "kill") == 0) raise(SIGKILL);
  ncclCommDestroy(chain::g_communicator);
  return 0;
}
