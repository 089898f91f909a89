// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/nvtx_text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gpuprof {
namespace {

TEST(NvtxText, ARegisteredNameHasOneHandle) {
  constexpr size_t kNames = 50'000;
  const auto name = [](size_t i) { return "request " + std::to_string(i); };
  std::vector<const void*> handles;
  for (size_t i = 0; i < kNames; ++i) handles.push_back(keep_nvtx_name(name(i)));
  for (size_t i = 0; i < kNames; i += 7) {
    ASSERT_EQ(nvtx_name(handles[i]), name(i));
    ASSERT_EQ(keep_nvtx_name(name(i)), handles[i]);
  }
  EXPECT_EQ(keep_nvtx_name(""), keep_nvtx_name(""));
  EXPECT_EQ(nvtx_name(keep_nvtx_name("")), "");
}

TEST(NvtxText, ANameThatDoesNotFitIsNone) {
  const void* const handle = keep_nvtx_name(std::string(100'000, 'x'));
  EXPECT_NE(handle, nullptr) << "NVTX takes that for: no tool";
  EXPECT_EQ(nvtx_name(handle), "");
}

}  // namespace
}  // namespace gpuprof
