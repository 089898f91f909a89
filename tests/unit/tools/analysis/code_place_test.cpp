// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/code_place.h"

#include <gtest/gtest.h>

namespace gpuprof::analysis {
namespace {

TEST(CodePlace, FilesOfLibrariesAreToldFromTheProgramsOwn) {
  for (const char* const path :
       {"/usr/lib/python3/dist-packages/numpy/core.py", "/venv/lib/python3.11/json/decoder.py",
        "/venv/site-packages/torch/nn/modules/module.py", "/opt/pytorch/torch/nn/modules/linear.py",
        "torch/optim/adam.py", "torch/_tensor.py", "/src/torch/torch/utils/data/dataloader.py",
        "<frozen importlib._bootstrap>", "/build/Lib/threading.py", "contextlib.py"}) {
    EXPECT_TRUE(is_library_file(path)) << path;
  }
  for (const char* const path :
       {"/home/me/train.py", "train.py", "/home/me/torch/train.py", "torch/train.py",
        "/data/my_torch/nn/model.py", "/home/me/my_threading.py", "/home/me/torch/models/net.py"}) {
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

}  // namespace
}  // namespace gpuprof::analysis
