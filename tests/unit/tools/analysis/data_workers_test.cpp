// SPDX-License-Identifier: Apache-2.0
// What a DataLoader's workers wait for, and what is advised.
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

TEST(DataWorkers, WhatTakesMostOfTheirTimeIsTheLimit) {
  const auto limit = [](double on_cpu, double queued, double disk) {
    DataLoading of = loading(LoadingLimit::elsewhere, 2, 8);
    of.waited_us = 100;
    of.on_cpu_pct = on_cpu;
    of.queued_pct = queued;
    of.disk_pct = disk;
    return limit_of(of);
  };
  EXPECT_EQ(limit(9, 10, 52), LoadingLimit::disk);
  EXPECT_EQ(limit(10, 17, 42), LoadingLimit::disk);
  EXPECT_EQ(limit(8, 36, 40), LoadingLimit::cpu);  // they sleep in 16 % alone
  EXPECT_EQ(limit(36, 8, 40), LoadingLimit::few_workers);
  EXPECT_EQ(limit(25, 0, 30), LoadingLimit::few_workers);  // they sleep for longer
  EXPECT_EQ(limit(90, 5, 0), LoadingLimit::few_workers);
  EXPECT_EQ(limit(5, 5, 39), LoadingLimit::elsewhere);
  EXPECT_EQ(limit(0, 1, 0), LoadingLimit::elsewhere);
}

// What is said of sleep agrees with the time for the disk that stands beside it.
TEST(DataWorkers, ThatTheyDoNotWaitForTheDiskIsNotSaid) {
  DataLoading of = loading(LoadingLimit::elsewhere, 2, 8);
  of.disk_pct = 39;
  const std::string text = describe(of);
  EXPECT_NE(text.find("mostly sleep"), std::string::npos) << text;
  EXPECT_EQ(text.find("not wait for the disk"), std::string::npos) << text;
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
