// SPDX-License-Identifier: Apache-2.0
// Which communicator a handle was at a time: the next one may have the same address.
#include <gtest/gtest.h>

#include "formats/trace/communicators.h"
#include "tests/unit/support/dump_maker.h"

namespace gpuprof::test {
namespace {

// Of handle 0x10, made at 1 and 3 s of CLOCK_MONOTONIC; of handle 0x20, at 2 s.
Trace trace_of(std::vector<std::pair<uint64_t, uint64_t>> made) {  // second, identity
  dump::Summary summary = make_summary(2'000'000'000);
  for (const auto& [second, identity] : made) {
    dump::Communicator* const each = summary.add_communicator();
    each->set_handle(0x10);
    each->set_identity(identity);
    each->set_made_ticks(2'000'000 + (second - 1) * 2'000'000'000);
  }
  dump::Communicator* const other = summary.add_communicator();
  other->set_handle(0x20);
  other->set_identity(9);
  ByteBuffer bytes;
  append(bytes, ChunkKind::header, make_header());
  append(bytes, ChunkKind::summary, summary);
  return load(view(bytes));
}

TEST(Communicators, AreToldByTheTimeOfTheCall) {
  for (const bool later_first : {false, true}) {
    const Trace trace = later_first ? trace_of({{3, 33}, {1, 11}}) : trace_of({{1, 11}, {3, 33}});
    const Process& process = trace.processes.at(0);
    const auto at = [&](int64_t milliseconds) {
      const int64_t time = milliseconds * 1'000'000 + process.realtime_offset;
      return communicator_identity(process, 0x10, time);
    };
    EXPECT_EQ(at(999), 11u) << "a call begins before the communicator is noted";
    EXPECT_EQ(at(1500), 11u);
    EXPECT_EQ(at(2999), 11u);
    EXPECT_EQ(at(3001), 33u);
    EXPECT_EQ(communicator_identity(process, 0x30, 0), 0u);
  }
}

}  // namespace
}  // namespace gpuprof::test
