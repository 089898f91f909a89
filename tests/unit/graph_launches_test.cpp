// SPDX-License-Identifier: Apache-2.0
// Which graph launches still lack records, in whatever order launches and records are told.
#include "collector/graph_launches.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace gpuprof {
namespace {

constexpr uint64_t kExec = 0x7f0000001000, kOther = 0x7f0000002000;

void add_records(GraphLaunches& launches, uint32_t correlation, int count) {
  for (int i = 0; i < count; ++i) launches.add_record(correlation);
}

TEST(GraphLaunches, TheFirstLaunchIsCompleteWithAllNodesThatHaveRecords) {
  GraphLaunches launches;
  launches.add(10, kExec, 3);
  EXPECT_EQ(launches.incomplete(true), 0u);  // without any record it is the caller's to wait for
  add_records(launches, 10, 2);
  EXPECT_EQ(launches.incomplete(true), 1u);
  launches.add_record(10);
  EXPECT_EQ(launches.incomplete(true), 0u);
}

TEST(GraphLaunches, WhatOtherLaunchesHadCountsAndNotTheNumberOfNodes) {
  GraphLaunches launches;
  launches.add(10, kExec, 5);  // two nodes copy nothing
  add_records(launches, 10, 3);
  launches.add(11, kExec, 5);
  add_records(launches, 11, 2);
  EXPECT_EQ(launches.incomplete(true), 1u);
  launches.add_record(11);
  EXPECT_EQ(launches.incomplete(true), 0u);
}

TEST(GraphLaunches, OfUnknownGraphsOtherLaunchesTell) {
  GraphLaunches launches;
  launches.add(10, kExec, 0);
  launches.add_record(10);
  EXPECT_EQ(launches.incomplete(false), 0u);  // it may have been all
  add_records(launches, 10, 3);
  launches.add(11, kExec, 0);
  launches.add_record(11);
  EXPECT_EQ(launches.incomplete(false), 1u);
  EXPECT_EQ(launches.incomplete(true), 0u);
  add_records(launches, 11, 3);
  EXPECT_EQ(launches.incomplete(false), 0u);
}

TEST(GraphLaunches, RecordsMayComeBeforeTheirLaunch) {
  GraphLaunches launches;
  add_records(launches, 10, 4);
  add_records(launches, 11, 2);
  EXPECT_EQ(launches.incomplete(false), 0u);  // of whatever: no launch was told
  launches.add(11, kExec, 4);
  EXPECT_EQ(launches.incomplete(false), 1u);
  launches.add(10, kExec, 4);
  EXPECT_EQ(launches.incomplete(false), 1u);
  add_records(launches, 11, 2);
  EXPECT_EQ(launches.incomplete(false), 0u);
}

TEST(GraphLaunches, GraphsAreCountedApartAndHandlesMayBeUsedAgain) {
  GraphLaunches launches;
  launches.add(10, kExec, 9);
  add_records(launches, 10, 9);
  launches.add(11, kOther, 2);
  add_records(launches, 11, 2);
  EXPECT_EQ(launches.incomplete(true), 0u);
  launches.add(12, kExec, 4);  // another graph by now
  add_records(launches, 12, 4);
  EXPECT_EQ(launches.incomplete(true), 0u);
}

TEST(GraphLaunches, ManyLaunchesAndAnotherWindow) {
  GraphLaunches launches;
  constexpr uint32_t kMany = 20000;
  for (uint32_t i = 1; i <= kMany; ++i) {
    launches.add(i, kExec + i % 701, 2);
    add_records(launches, i, i % 5 == 0 ? 1 : 2);
  }
  EXPECT_EQ(launches.incomplete(true), kMany / 5);
  launches.clear();
  EXPECT_EQ(launches.incomplete(false), 0u);
  launches.add(5, kExec + 5, 2);
  add_records(launches, 5, 2);
  EXPECT_EQ(launches.incomplete(true), 0u);
}

}  // namespace
}  // namespace gpuprof
