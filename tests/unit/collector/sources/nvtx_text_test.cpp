// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/nvtx_text.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

namespace gpuprof {
namespace {

size_t resident_bytes() {
  size_t size = 0, pages = 0;
  std::ifstream("/proc/self/statm") >> size >> pages;
  return pages * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

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

TEST(NvtxText, ALongNameIsCutAndStaysApart) {
  const std::string common(100'000, 'x');
  const void* const handle = keep_nvtx_name(common + "a");
  EXPECT_EQ(nvtx_name(handle).size(), 1024u);
  EXPECT_EQ(nvtx_name(handle).substr(0, 1005), common.substr(0, 1005));
  EXPECT_EQ(nvtx_name(handle).substr(1005, 3), "...");
  EXPECT_EQ(nvtx_name_loss(handle), NameLoss::end);
  EXPECT_EQ(keep_nvtx_name(common + "a"), handle);
  EXPECT_NE(nvtx_name(keep_nvtx_name(common + "b")), nvtx_name(handle));
  EXPECT_EQ(nvtx_name_loss(keep_nvtx_name("short")), NameLoss::none);
  EXPECT_EQ(nvtx_name_loss(nullptr), NameLoss::none);
}

// Texts that XLA registers with each program that it compiles.
TEST(NvtxText, NamesTakeNoMoreThanTheirRoom) {
  const auto name = [](size_t i) { return std::to_string(i) + std::string(20'000, 'y'); };
  std::vector<const void*> handles;
  const size_t before = resident_bytes();
  for (size_t i = 0; i < 100'000; ++i) handles.push_back(keep_nvtx_name(name(i)));
  EXPECT_LT(resident_bytes() - before, 80u << 20);
  EXPECT_EQ(nvtx_name(handles[0]), name(0)) << "whole, as there was room";
  EXPECT_EQ(keep_nvtx_name(name(0)), handles[0]) << "and so it stays";
  EXPECT_EQ(nvtx_name_loss(handles[10'000]), NameLoss::end);
  EXPECT_NE(handles.back(), nullptr) << "NVTX takes that for: no tool";
  EXPECT_EQ(nvtx_name_loss(handles.back()), NameLoss::whole);
  EXPECT_EQ(nvtx_name(handles.back()), "");
}

}  // namespace
}  // namespace gpuprof
