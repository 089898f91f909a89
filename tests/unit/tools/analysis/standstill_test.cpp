// SPDX-License-Identifier: Apache-2.0
// Jobs that stand, as their rings tell it: who is behind, and when nobody can be named.
#include "tools/analysis/standstill.h"

#include <gtest/gtest.h>

#include "tests/unit/support/dump_maker.h"
#include "tests/unit/support/trace_maker.h"

namespace gpuprof::test {
namespace {

using analysis::key_of;
using analysis::Standstill;
using analysis::standstill_of;

constexpr int64_t kSecond = 1'000'000'000;

// Times in ns from the window's begin.
struct Rank {
  uint64_t collectives = 10;
  int64_t last_call = kSecond;
  int64_t alive_until = 20 * kSecond;  // its clock's last anchor
  int64_t looked_at = 20 * kSecond;    // its ring; 0: not known
  uint64_t lost = 0;                   // records
};

Trace load_ranks(const std::vector<Rank>& ranks) {
  ByteBuffer bytes;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const Rank& rank = ranks[i];
    dump::Header header = make_header(1, static_cast<int>(i));
    header.set_world_size(static_cast<int>(ranks.size()));
    header.set_nccl_version(22705);
    dump::ClockAnchor* const anchor = header.mutable_clock()->add_anchor();
    const auto ns = static_cast<uint64_t>(rank.alive_until);
    anchor->set_ticks(2'000'000 + 2 * ns);
    anchor->set_monotonic_ns(kSecond + ns);
    anchor->set_realtime_ns(kEpochNs + rank.alive_until);
    append(bytes, ChunkKind::header, header);
    MemoryNames names;
    BatchEncoder encoder(names);
    encoder.begin(0, 1);
    const auto last = 2'000'000 + 2 * static_cast<uint64_t>(rank.last_call);
    for (uint64_t call = 0; call < rank.collectives; ++call) {
      const uint64_t end = last - 20'000 * (rank.collectives - 1 - call);
      Record record =
          make_record(Kind::collective, end - 10'000, end, names.api("ncclAllReduce", 3));
      record.collective.communicator = 0x1000;
      record.collective.sequence = static_cast<uint32_t>(call);
      record.collective.peer = -1;
      record.collective.rank_count = static_cast<uint16_t>(ranks.size());
      record.collective.rank = static_cast<uint16_t>(i);
      if (!encoder.add(record, 100, "main")) throw std::bad_alloc();
    }
    append_events(bytes, encoder);
  }
  Trace trace = load(view(bytes));
  for (size_t i = 0; i < ranks.size(); ++i) {
    Process& process = trace.processes.at(i);
    process.recovered = true;
    process.looked_at = ranks[i].looked_at ? kEpochNs + ranks[i].looked_at : 0;
    process.losses[static_cast<size_t>(Loss::buffer_full)] = ranks[i].lost;
  }
  return trace;
}

std::vector<int32_t> behind(const std::vector<Rank>& ranks) {
  const auto found = standstill_of(load_ranks(ranks));
  return found ? found->behind : std::vector<int32_t>{};
}

using Ranks = std::vector<int32_t>;

TEST(Standstill, WhoIssuedLeastIsNamed) {
  EXPECT_EQ(behind({{}, {9}, {}, {}}), Ranks{1});
  EXPECT_EQ(behind({{}, {}, {}, {}}), Ranks{}) << "all as many: who is behind is not known";
  EXPECT_EQ(behind({{}, {9, 1 * kSecond, 2 * kSecond}, {}, {}}), Ranks{1}) << "stopped";
  EXPECT_EQ(behind({{}, {9}, {10, 19 * kSecond}, {}}), Ranks{}) << "one goes on";
}

TEST(Standstill, OfAsManyCallsWhoeverIsGoneIsNamed) {
  const Rank gone{10, 1 * kSecond, 2 * kSecond};
  EXPECT_EQ(behind({{}, gone, {}, {}}), Ranks{1});
  EXPECT_EQ(behind({gone, gone, gone, gone}), Ranks{}) << "the last sign of life was of all";
  const Rank ended_later{10, 1 * kSecond, 12 * kSecond};
  EXPECT_EQ(behind({{}, ended_later, {}, {}}), Ranks{}) << "it waited as the others did";
}

// Ranks are looked at one after the other: beside other work that takes seconds.
TEST(Standstill, ARankIsNotSilentAfterItWasLookedAt) {
  const Rank early{8, kSecond / 2, kSecond / 2, kSecond / 2};
  EXPECT_EQ(behind({early, {9}, {}, {}}), Ranks{});
  const Rank unknown{8, kSecond / 2, kSecond / 2, 0};
  EXPECT_EQ(behind({unknown, {9}, {}, {}}), Ranks{0}) << "what it left is all that it did";
  const Rank waits{10, kSecond, 3 * kSecond, 4 * kSecond}, stopped{10, kSecond, kSecond / 2};
  EXPECT_EQ(behind({waits, stopped, {}, {}}), Ranks{1});
}

// A call that waits for it inside NCCL is recorded when it returns.
TEST(Standstill, WhoIsGoneComesBeforeWhoSeemsToHaveIssuedLess) {
  const Rank stopped{10, 1 * kSecond, kSecond / 2}, waits{9};
  const Trace trace = load_ranks({waits, stopped, waits, waits});
  const auto found = standstill_of(trace);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->behind, Ranks{1});
  EXPECT_EQ(describe(*found).find("as many"), std::string::npos) << describe(*found);
  const Rank killed_later{10, 1 * kSecond, 15 * kSecond};
  EXPECT_EQ(behind({{}, {9}, killed_later, {}}), Ranks{1});
}

// Complete dumps of windows that max_s cut, and no ring beside them.
TEST(Standstill, AWindowThatWasCutTellsOfItsEndAlone) {
  Trace trace = load_ranks({{}, {9}, {}, {}});
  for (Process& process : trace.processes) {
    process.recovered = false, process.completeness = Completeness::complete;
    process.window_end = kEpochNs + 20 * kSecond;
    process.summary.set_partial(true), process.summary.set_end_reason("max_s");
  }
  const auto found = standstill_of(trace);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->behind, Ranks{1});
  EXPECT_TRUE(found->over());
  EXPECT_STREQ(key_of(*found), "stood");
  EXPECT_TRUE(describe(*found).starts_with("the job stood: rank 1 made no call from "));
  trace.processes[2].recovered = true;
  const auto killed = standstill_of(trace);
  ASSERT_TRUE(killed);
  EXPECT_FALSE(killed->over()) << "of one whose process was killed the end is known";
  trace.processes[2].recovered = false, trace.processes[2].summary.set_partial(false);
  EXPECT_FALSE(standstill_of(trace)) << "one ended as it should";
}

TEST(Standstill, CountsOfARankThatLostRecordsNameNobody) {
  EXPECT_EQ(behind({{8, kSecond, 20 * kSecond, 20 * kSecond, 5}, {9}, {}, {}}), Ranks{});
  EXPECT_EQ(behind({{10, kSecond, 20 * kSecond, 20 * kSecond, 5}, {9}, {}, {}}), Ranks{1})
      << "it issued more all the same";
}

}  // namespace
}  // namespace gpuprof::test
