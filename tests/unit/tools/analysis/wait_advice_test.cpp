// SPDX-License-Identifier: Apache-2.0
// What is advised against waits is about the calls that wait.
#include "tools/analysis/wait_advice.h"

#include <gtest/gtest.h>

namespace gpuprof::analysis {
namespace {

Tables waits(std::vector<CallRow> rows) {
  Tables out;
  out.synchronizations = std::move(rows);
  return out;
}

CopyRow copies_to_gpu(double total_us, double asynchronous_us) {
  CopyRow out;
  out.name = "Memcpy HtoD (Pinned -> Device)";
  out.count = 10;
  out.total_us = total_us;
  out.asynchronous_us = asynchronous_us;
  return out;
}

TEST(WaitAdvice, IsOfTheCallsThatWait) {
  EXPECT_EQ(wait_advice(waits({{"cudaDeviceSynchronize", 10, 1000}})),
            "Do not wait for the GPU in each step: replace waits for the whole device by stream "
            "waits on events.");
  EXPECT_EQ(wait_advice(waits({{"cudaStreamSynchronize", 10, 1000}})),
            "Do not wait for the GPU in each step: read what the GPU computes (.item(), .cpu(), "
            "print) every N steps.");
  EXPECT_NE(wait_advice(waits({{"cudaMemcpy", 10, 1000}})).find("non_blocking"), std::string::npos);
  EXPECT_NE(wait_advice(waits({{"cuEventSynchronize", 10, 1000}})).find("events only where"),
            std::string::npos);
}

TEST(WaitAdvice, ThoseThatWaitLongestComeFirstAndRareOnesNotAtAll) {
  const std::string advice = wait_advice(waits(
      {{"cudaFree", 1, 100}, {"hipDeviceSynchronize", 1, 400}, {"cuStreamSynchronize", 1, 600}}));
  const size_t stream = advice.find(".item()"), device = advice.find("whole device");
  ASSERT_NE(stream, std::string::npos) << advice;
  ASSERT_NE(device, std::string::npos) << advice;
  EXPECT_LT(stream, device);
  EXPECT_EQ(advice.find("release"), std::string::npos) << advice;
}

// PyTorch's copies of pageable memory wait for their stream after the copy.
TEST(WaitAdvice, CopiesAreOnlyAdvisedWhereTheyBlock) {
  Tables tables = waits({{"cudaStreamSynchronize", 10, 1000}});
  tables.copies = {copies_to_gpu(500, 500)};
  EXPECT_EQ(wait_advice(tables).find("non_blocking"), std::string::npos);
  tables.copies = {copies_to_gpu(500, 0)};
  EXPECT_NE(wait_advice(tables).find("non_blocking"), std::string::npos);
}

TEST(WaitAdvice, NothingIsSaidOfCallsThatAreNotKnown) {
  EXPECT_EQ(wait_advice({}), "");
  EXPECT_EQ(wait_advice(waits({{"somethingElse", 1, 100}})), "");
}

}  // namespace
}  // namespace gpuprof::analysis
