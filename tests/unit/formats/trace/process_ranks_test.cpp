// SPDX-License-Identifier: Apache-2.0
// Ranks from communicators, where no environment variable told them.
#include "formats/trace/process_ranks.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/unit/support/trace_maker.h"

namespace gpuprof::test {
namespace {

struct Call {
  uint16_t rank, size;
};

// A process's window with these collectives. `rank`: what its environment says, -1: nothing.
std::string dump_of(uint32_t pid, const std::vector<Call>& calls, int rank = -1,
                    uint32_t window = 0, uint32_t parent = 0, int32_t world = 0, uint64_t start = 0,
                    uint64_t parent_start = 0) {
  MemoryNames names;
  BatchEncoder encoder(names);
  encoder.begin(window, 1);
  uint64_t us = 10;
  for (const Call& call : calls) {
    Record r = make_record(Kind::collective, ticks_at(us), ticks_at(us + 5),
                           names.api("ncclAllReduce", 3));
    r.collective.peer = -1;
    r.collective.rank = call.rank, r.collective.rank_count = call.size;
    if (!encoder.add(r, pid, "python")) throw std::bad_alloc();
    us += 10;
  }
  ByteBuffer bytes;
  dump::Header header = make_header(1, rank);
  header.set_pid(pid);
  header.set_window(window);
  header.set_parent_pid(parent);
  header.set_os_start_time(start);
  header.set_parent_start_time(parent_start);
  if (rank < 0) header.set_world_size(world);
  append(bytes, ChunkKind::header, header);
  append_events(bytes, encoder);
  append(bytes, ChunkKind::summary, make_summary(ticks_at(1000)));
  return std::string(view(bytes));
}

std::vector<int> ranks_of(Trace trace) {
  find_ranks(trace);
  std::vector<int> ranks;
  for (const Process& process : trace.processes) ranks.push_back(process.header.rank());
  return ranks;
}

using Ranks = std::vector<int>;

TEST(ProcessRanks, AreThoseOfTheLargestCommunicator) {
  Trace trace = load(dump_of(10, {{1, 2}, {3, 4}, {1, 2}}) + dump_of(11, {{2, 4}, {0, 2}}));
  find_ranks(trace);
  EXPECT_EQ(trace.processes.at(0).header.rank(), 3);
  EXPECT_EQ(trace.processes.at(1).header.rank(), 2);
  EXPECT_EQ(trace.processes.at(1).header.world_size(), 4);
}

TEST(ProcessRanks, OneWindowTellsForAllOfAProcess) {
  EXPECT_EQ(ranks_of(load(dump_of(10, {}) + dump_of(11, {{0, 2}}) + dump_of(10, {{1, 2}}, -1, 1))),
            (Ranks{1, 0, 1}));
}

TEST(ProcessRanks, CommunicatorsOfPartsOfTheJobTellNothing) {
  EXPECT_EQ(ranks_of(load(dump_of(10, {{0, 2}}) + dump_of(11, {{1, 2}}) + dump_of(12, {{0, 2}}) +
                          dump_of(13, {{1, 2}}))),
            (Ranks{-1, -1, -1, -1}));
  // Of two of one size nobody knows which one is the job's.
  EXPECT_EQ(ranks_of(load(dump_of(10, {{0, 2}, {1, 2}}) + dump_of(11, {{1, 2}}))), (Ranks{-1, -1}));
}

TEST(ProcessRanks, ACommunicatorSmallerThanTheJobTellsNothing) {
  const auto ranks = [](int32_t world) {
    return ranks_of(
        load(dump_of(10, {{0, 2}}, -1, 0, 0, world) + dump_of(11, {{1, 2}}, -1, 0, 0, world)));
  };
  EXPECT_EQ(ranks(8), (Ranks{-1, -1}));
  EXPECT_EQ(ranks(2), (Ranks{0, 1}));
  EXPECT_EQ(ranks(1), (Ranks{0, 1}));  // what a batch script's step of one task says
}

TEST(ProcessRanks, WhatTheEnvironmentSaysStays) {
  EXPECT_EQ(ranks_of(load(dump_of(10, {{3, 4}}, 7) + dump_of(11, {{2, 4}}))), (Ranks{7, 2}));
  EXPECT_EQ(ranks_of(load(dump_of(10, {{3, 4}}, 2) + dump_of(11, {{2, 4}}))), (Ranks{2, -1}));
}

// As SLURM_PROCID of a batch script, which is 0.
TEST(ProcessRanks, OneThatAllHaveInheritedIsNobodys) {
  EXPECT_EQ(ranks_of(load(dump_of(10, {{1, 2}}, 0) + dump_of(11, {{0, 2}}, 0))), (Ranks{1, 0}));
  EXPECT_EQ(ranks_of(load(dump_of(10, {}, 0) + dump_of(11, {}, 0))), (Ranks{0, 0}));
  // A rank that was started again has the same one in the new communicator.
  EXPECT_EQ(ranks_of(load(dump_of(10, {{0, 2}}, 0) + dump_of(11, {{1, 2}}, 1) +
                          dump_of(12, {{0, 2}}, 0) + dump_of(13, {{1, 2}}, 1))),
            (Ranks{0, 1, 0, 1}));
}

TEST(ProcessRanks, OfOneProcessAloneTheCommunicatorMayBeOfAPart) {
  EXPECT_EQ(ranks_of(load(dump_of(10, {{1, 2}}))), (Ranks{-1}));
  EXPECT_EQ(ranks_of(load(dump_of(10, {{1, 2}}) + dump_of(10, {{1, 2}}, -1, 1))), (Ranks{-1, -1}));
}

TEST(ProcessRanks, ProcessesWithoutCollectivesHaveNone) {
  EXPECT_EQ(ranks_of(load(dump_of(10, {}) + dump_of(11, {{0, 1}}) + dump_of(12, {{0, 0}}))),
            (Ranks{-1, -1, -1}));
}

TEST(ProcessRanks, DataWorkersHaveThoseOfTheirProcess) {
  EXPECT_EQ(ranks_of(load(dump_of(20, {}, -1, 0, 11) + dump_of(10, {{0, 2}}) +
                          dump_of(11, {{1, 2}}) + dump_of(21, {}, -1, 0, 99))),
            (Ranks{1, 0, 1, -1}));
}

TEST(ProcessRanks, OfContainersWithOneHostsNameAndTheSamePids) {
  const auto process = [](uint16_t rank, uint64_t start) {
    return dump_of(1, {{rank, 2}}, -1, 0, 0, 0, start);
  };
  const auto worker = [](uint64_t parent_start) {
    return dump_of(20, {}, -1, 0, 1, 0, 900, parent_start);
  };
  EXPECT_EQ(ranks_of(load(process(1, 500) + process(0, 600) + worker(600) + worker(500))),
            (Ranks{1, 0, 0, 1}));
  EXPECT_EQ(ranks_of(load(process(1, 500) + process(0, 600) + worker(550))), (Ranks{1, 0, -1}));
}

}  // namespace
}  // namespace gpuprof::test
