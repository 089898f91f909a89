// SPDX-License-Identifier: Apache-2.0
// What is advised about a DataLoader's workers.
#include "tools/analysis/data_workers.h"

#include <gtest/gtest.h>

#include <string>

namespace gpuprof::analysis {
namespace {

DataLoading loading(LoadingLimit limit, uint32_t workers, uint32_t usable_cpus) {
  DataLoading out;
  out.limit = limit;
  out.workers = workers;
  out.usable_cpus = usable_cpus;
  return out;
}

TEST(DataWorkers, NoMoreAreAdvisedThanThereAreCpus) {
  const auto advice = [](uint32_t cpus) {
    return advice_for(loading(LoadingLimit::no_workers, 0, cpus));
  };
  EXPECT_NE(advice(64).find("num_workers=4; this process may use 64 CPUs"), std::string::npos);
  EXPECT_NE(advice(3).find("num_workers=2; this process may use 3 CPUs"), std::string::npos);
  EXPECT_NE(advice(2).find("num_workers=1; this process may use 2 CPUs"), std::string::npos);
  EXPECT_NE(advice(1).find("num_workers=1; this process may use 1 CPU,"), std::string::npos);
  EXPECT_EQ(advice(0).find("num_workers="), std::string::npos);  // not known: no number
}

TEST(DataWorkers, MoreWorkersAreAdvisedUpToTheCpus) {
  const std::string text = advice_for(loading(LoadingLimit::few_workers, 2, 8));
  EXPECT_NE(text.find("num_workers, up to 7; this process may use 8 CPUs"), std::string::npos);
}

// A thread that sleeps does not tell what for.
TEST(DataWorkers, WhatSleepingWorkersWaitForIsNotGuessed) {
  const std::string text = advice_for(loading(LoadingLimit::elsewhere, 2, 8));
  for (const char* const guess : {"remote", "network", "rate limit"}) {
    EXPECT_EQ(text.find(guess), std::string::npos) << guess;
  }
}

}  // namespace
}  // namespace gpuprof::analysis
