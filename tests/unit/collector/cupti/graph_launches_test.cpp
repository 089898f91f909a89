// SPDX-License-Identifier: Apache-2.0
// Which graph launches still lack records, in whatever order launches and records are told.
#include "collector/cupti/graph_launches.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace gpuprof {
namespace {

constexpr uint64_t kExec = 0x7f0000001000, kOther = 0x7f0000002000;
constexpr uint32_t kGraph = 3, kOtherGraph = 4;

void add_records(GraphLaunches& launches, uint32_t correlation, int count,
                 uint32_t graph = kGraph) {
  for (int i = 0; i < count; ++i) launches.add_record(correlation, graph);
}

void expect(GraphLaunches& launches, uint64_t awaited, uint64_t unfinished, uint64_t untimed = 0) {
  const GraphLaunches::Missing missing = launches.missing();
  EXPECT_EQ(missing.awaited, awaited);
  EXPECT_EQ(missing.unfinished, unfinished);
  EXPECT_EQ(missing.untimed, untimed);
}

TEST(GraphLaunches, TheOnlyLaunchIsWaitedForToItsLastNode) {
  GraphLaunches launches;
  launches.add(10, kExec, 3, true);
  expect(launches, 0, 0);  // without any record it is the caller's to wait for
  add_records(launches, 10, 2);
  expect(launches, 1, 0);  // the third may be a copy of nothing: that is no loss
  add_records(launches, 10, 1);
  expect(launches, 0, 0);
}

TEST(GraphLaunches, WhatOtherLaunchesHadCountsAndNotTheNumberOfNodes) {
  GraphLaunches launches;
  launches.add(10, kExec, 5, true);  // two nodes have no records
  add_records(launches, 10, 3);
  launches.add(11, kExec, 5, true);
  add_records(launches, 11, 2);
  expect(launches, 1, 1);
  add_records(launches, 11, 1);
  expect(launches, 0, 0);
}

TEST(GraphLaunches, OnlyTheNewestMayLackSome) {
  GraphLaunches launches;
  for (uint32_t i = 10; i < 14; ++i) launches.add(i, kExec, 0, true);
  add_records(launches, 10, 4);
  add_records(launches, 11, 2);  // a condition did not hold
  add_records(launches, 12, 3);
  expect(launches, 0, 0);
  add_records(launches, 13, 1);
  expect(launches, 1, 1);
  add_records(launches, 13, 1);
  expect(launches, 0, 0);  // as many as the shortest
}

TEST(GraphLaunches, OnesAfterTheWindowSayThatThoseInItAreOver) {
  GraphLaunches launches;
  launches.add(10, kExec, 0, true);
  launches.add(11, kExec, 0, true);
  add_records(launches, 10, 4);
  add_records(launches, 11, 2);
  expect(launches, 1, 1);
  add_records(launches, 12, 1);  // nobody told of it
  expect(launches, 0, 0);
}

TEST(GraphLaunches, RecordsMayComeBeforeTheirLaunchAndBackwards) {
  GraphLaunches launches;
  add_records(launches, 11, 2);
  add_records(launches, 10, 4);
  expect(launches, 0, 0);  // of whatever: no launch was told
  launches.add(11, kExec, 4, true);
  launches.add(10, kExec, 4, true);
  expect(launches, 1, 1);
  add_records(launches, 11, 2);
  expect(launches, 0, 0);
}

TEST(GraphLaunches, HandlesMayBeUsedAgain) {
  for (const int second : {4, 20}) {
    GraphLaunches launches;
    launches.add(10, kExec, 9, true);
    launches.add(11, kExec, 9, true);
    add_records(launches, 10, 9);
    add_records(launches, 11, 9);
    launches.add(12, kExec, static_cast<uint32_t>(second), true);  // another graph by now
    add_records(launches, 12, second, kOtherGraph);
    expect(launches, 0, 0);
  }
}

TEST(GraphLaunches, CorrelationIdsWrap) {
  GraphLaunches launches;
  launches.add(0xfffffff0, kExec, 3, true);
  add_records(launches, 0xfffffff0, 3);
  launches.add(5, kExec, 3, true);
  add_records(launches, 5, 1);
  expect(launches, 1, 1);
}

// ---- of graphs that CUPTI did not see instantiated ---------------------------------------------

TEST(GraphLaunches, OfUnknownGraphsOtherLaunchesTell) {
  GraphLaunches launches;
  for (uint32_t i = 10; i < 13; ++i) launches.add(i, kExec, 0, false);
  add_records(launches, 10, 4);
  add_records(launches, 11, 1);
  expect(launches, 2, 2);
  add_records(launches, 11, 3);
  expect(launches, 1, 1);
  add_records(launches, 12, 4);
  expect(launches, 0, 0);
}

TEST(GraphLaunches, UnknownGraphsWithoutRecordsAreUntimed) {
  GraphLaunches launches;
  for (uint32_t i = 10; i < 20; ++i) launches.add(i, kExec, 0, false);
  launches.note_work(9);
  expect(launches, 10, 0, 10);  // the GPU is behind: they may come
  launches.note_work(15);       // CUPTI has passed some, and had nothing to say of them
  expect(launches, 0, 0, 10);
  launches.add(20, kOther, 0, false);
  expect(launches, 1, 0, 11);
}

TEST(GraphLaunches, ManyLaunchesAndAnotherWindow) {
  GraphLaunches launches;
  constexpr uint32_t kMany = 20000, kGraphs = 700;
  for (uint32_t i = 1; i <= kMany; ++i) {
    launches.add(i, kExec + i % kGraphs, 2, true);
    add_records(launches, i, i + kGraphs > kMany ? 1 : 2, i % kGraphs + 1);
  }
  expect(launches, kGraphs, kGraphs);
  launches.clear();
  expect(launches, 0, 0);
  launches.add(5, kExec + 5, 2, true);
  add_records(launches, 5, 2);
  expect(launches, 0, 0);
}

}  // namespace
}  // namespace gpuprof
