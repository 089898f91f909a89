// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/code_place.h"

#include <gtest/gtest.h>

#include <vector>

namespace gpuprof::analysis {
namespace {

TEST(CodePlace, FilesOfLibrariesAreToldFromTheProgramsOwn) {
  for (const char* const path :
       {"/usr/lib/python3/dist-packages/numpy/core.py", "/venv/lib/python3.11/json/decoder.py",
        "/venv/site-packages/torch/nn/modules/module.py", "/opt/pytorch/torch/nn/modules/linear.py",
        "torch/optim/adam.py", "torch/_tensor.py", "/src/torch/torch/utils/data/dataloader.py",
        "<frozen importlib._bootstrap>", "<string>", "<eval_with_key>.4", "/build/Lib/threading.py",
        "contextlib.py"}) {
    EXPECT_TRUE(is_library_file(path)) << path;
  }
  for (const char* const path :
       {"<stdin>", "<generated>", "<ipython-input-3-0123>", "/home/me/train.py", "train.py",
        "/home/me/torch/train.py", "torch/train.py", "/data/my_torch/nn/model.py",
        "/home/me/my_threading.py", "/home/me/torch/models/net.py"}) {
    EXPECT_FALSE(is_library_file(path)) << path;
  }
}

TEST(CodePlace, TheInnermostLineOfTheProgramIsNamed) {
  const CodePlace place = python_stack_place(
      "torch/nn/modules/module.py(1501): _call_impl;/home/me/torch/train.py(41): step;"
      "/home/me/main.py(7): main");
  EXPECT_TRUE(place.own);
  EXPECT_EQ(place.text, "train.py:41 step");
}

// Who asked for memory is none of the functions of the allocator that gave it.
TEST(CodePlace, AllocatorsOwnNoMemory) {
  StackTable stacks;
  stacks.add_module({0x1000, 0x2000, 0, "/venv/torch/lib/libc10_cuda.so", "", 0, 0});
  stacks.add_module({0x2000, 0x3000, 0, "/venv/torch/lib/libtorch_cpu.so", "", 0, 0});
  const auto frame = [&](uint64_t address, const char* function) {
    stacks.set_frames(address, {{function, "", 0, false, false}});
    return address;
  };
  const uint64_t found = frame(0x1100, "alloc_found_block"),
                 give = frame(0x2100, "c10::cuda::CUDACachingAllocator::allocate(unsigned long)"),
                 empty = frame(0x2200, "at::native::empty_cuda");
  const StackIndex stack = stacks.add(std::vector<uint64_t>{found, give, empty});
  EXPECT_EQ(native_place(stacks, stack).text, "alloc_found_block");
  EXPECT_EQ(memory_place(stacks, stack).text, "at::native::empty_cuda");
  EXPECT_EQ(memory_place(stacks, stacks.add(std::vector<uint64_t>{found, give})).text, "");
}

}  // namespace
}  // namespace gpuprof::analysis
