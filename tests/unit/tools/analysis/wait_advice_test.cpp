// SPDX-License-Identifier: Apache-2.0
// What is advised against waits is about the calls that wait.
#include "tools/analysis/wait_advice.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tools/analysis/evidence.h"

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

std::string advice_on_copies(const std::vector<std::pair<std::string, double>>& rows) {
  Report report{};
  for (const auto& [name, exposed_us] : rows) {
    CopyRow& row = report.tables.copies.emplace_back();
    row.name = "Memcpy " + name, row.count = 1;
    row.total_us = row.exposed_us = row.asynchronous_us = row.exposed_asynchronous_us = exposed_us;
  }
  Verdict verdict{};
  verdict.cause = Cause::transfer;
  add_evidence(report, verdict);
  return verdict.advice.substr(0, verdict.advice.find(':'));
}

TEST(CopyAdvice, IsOfTheWayThatMostOfThemGo) {
  const std::string within = "Most of this is copies and sets within GPU memory",
                    between = "Most of this is copies from GPU to GPU",
                    pinned = "These copies are of pinned memory and do not block";
  EXPECT_EQ(advice_on_copies({{"DtoD (Device -> Device)", 6}, {"PtoP", 5}}), within);
  EXPECT_EQ(advice_on_copies({{"DtoD (Device -> Device)", 5}, {"PtoP", 6}}), between);
  EXPECT_EQ(advice_on_copies({{"PtoP", 4}, {"HtoD (Pinned -> Device)", 6}}), pinned);
  EXPECT_EQ(advice_on_copies({{"HtoA (Pinned -> Array)", 6}, {"AtoA (Array -> Array)", 5}}),
            pinned);
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
