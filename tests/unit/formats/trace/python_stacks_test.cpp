// SPDX-License-Identifier: Apache-2.0
// Frames of Python from records to the trace: in stacks of calls, of samples, of graph nodes.
#include <gtest/gtest.h>

#include "formats/core/ring_file.h"
#include "tests/unit/support/recovered.h"
#include "tests/unit/support/ring_maker.h"

namespace gpuprof::test {
namespace {

using Lines = std::vector<std::string>;

// What the collector puts in a stack for line `line` of a function. `strings` interns.
template <typename Strings>
uint64_t python_frame(Strings& strings, std::string_view file, std::string_view function,
                      uint32_t line) {
  const PythonCodeName code{strings.intern(file), strings.intern(function)};
  const StringId id = strings.intern({reinterpret_cast<const char*>(&code), sizeof code});
  return kPythonFrame | uint64_t{line} << 32 | id;
}

Record sample_at(uint64_t ticks, uint32_t thread, StringId stack) {
  Record r = make_record(Kind::sample, ticks, ticks);
  r.sample.stack = stack;
  r.sample.thread = thread;
  return r;
}

// A dump with these records, given by thread 1 as "sampler" where they are samples, else by
// `thread` as "trainer".
Trace dump_of(const MemoryNames& names, const std::vector<Record>& records, uint32_t thread,
              uint64_t asked_ns) {
  BatchEncoder encoder(names);
  encoder.begin(0, 0);
  for (const Record& r : records) {
    const bool sample = r.kind == Kind::sample;
    EXPECT_TRUE(encoder.add(r, sample ? 1 : thread, sample ? "sampler" : "trainer"));
  }
  ByteBuffer bytes;
  dump::Header header = make_header();
  header.set_sample_period_ns(asked_ns);
  append(bytes, ChunkKind::header, header);
  append_events(bytes, encoder);
  append(bytes, ChunkKind::summary, make_summary(2'000'000'000));
  Trace trace = load(view(bytes));
  EXPECT_TRUE(trace.problems.empty());
  return trace;
}

TEST(PythonStacks, SamplesAreOfTheThreadTheySawAndNameNoThread) {
  MemoryNames names;
  const uint64_t train = python_frame(names, "train.py", "main", 12);
  const StringId inner = names.intern_stack({python_frame(names, "data.py", "load", 3), train});
  const StringId outer = names.intern_stack({train});
  const Trace trace = dump_of(names,
                              {sample_at(4'000'000, 77, inner),
                               make_record(Kind::call, 5'000'000, 5'001'000, names.api("f")),
                               sample_at(6'000'000, 77, outer), sample_at(6'000'000, 78, inner)},
                              77, 1'000'000);
  const Process& p = trace.processes.at(0);
  ASSERT_EQ(p.events.size(), 1u);
  EXPECT_EQ(p.lane(p.events[0]).thread_name, "trainer") << "not the thread's that took the sample";
  ASSERT_EQ(p.samples.size(), 3u);
  EXPECT_EQ(p.samples[0].thread, 77u);
  EXPECT_EQ(p.samples[0].time, kEpochNs + 1'000'000);
  EXPECT_EQ(p.stacks.lines(p.samples[0].stack), (Lines{"load (data.py:3)", "main (train.py:12)"}));
  EXPECT_EQ(p.samples[1].time, kEpochNs + 2'000'000);
  EXPECT_EQ(p.stacks.lines(p.samples[1].stack), Lines{"main (train.py:12)"});
  EXPECT_EQ(p.samples[2].thread, 78u);
}

TEST(PythonStacks, PeriodIsTheUsualGapAndNoShorterThanAskedFor) {
  MemoryNames names;
  const StringId stack = names.intern_stack({python_frame(names, "train.py", "main", 12)});
  const auto period = [&](uint64_t gap_ns, uint64_t asked_ns) {
    std::vector<Record> records;
    for (uint64_t i = 0; i < 9; ++i) {
      records.push_back(sample_at(2'000'000 + 2 * gap_ns * i, 77, stack));
      // Another thread's, in between.
      records.push_back(sample_at(2'000'000 + 2 * gap_ns * i + 2'000, 78, stack));
    }
    return dump_of(names, records, 77, asked_ns).processes.at(0).sample_period;
  };
  EXPECT_EQ(period(7'000'000, 5'000'000), 7'000'000);
  EXPECT_EQ(period(1'000'000, 5'000'000), 5'000'000);
  EXPECT_EQ(period(400'000'000, 5'000'000), 100'000'000) << "a stall is not a period";
  EXPECT_EQ(period(7'000'000, 0), 7'000'000);
  EXPECT_EQ(period(7'000'000, 1'000'000'000), 100'000'000);
}

TEST(PythonStacks, PeriodIsNotTheGapBetweenThreads) {
  MemoryNames names;
  const StringId stack = names.intern_stack({python_frame(names, "train.py", "main", 12)});
  std::vector<Record> records = {sample_at(2'000'000, 77, stack), sample_at(18'000'000, 77, stack)};
  for (uint32_t i = 1; i <= 4; ++i)
    records.push_back(sample_at(18'000'000 + i * 80'000'000, 77 + i, stack));
  EXPECT_EQ(dump_of(names, records, 77, 5'000'000).processes.at(0).sample_period, 8'000'000);
}

TEST(PythonStacks, AFrameWhoseCodeIsNotThereHasNoName) {
  MemoryNames names;
  const StringId stack = names.intern_stack({kPythonFrame | uint64_t{5} << 32 | 999, 0x1010});
  const Trace trace = dump_of(names, {sample_at(4'000'000, 77, stack)}, 77, 0);
  const Process& p = trace.processes.at(0);
  ASSERT_EQ(p.samples.size(), 1u);
  EXPECT_EQ(p.stacks.lines(p.samples[0].stack).size(), 2u);
}

TEST(PythonStacks, GraphNodesOfAKilledProcessHaveThem) {
  RingMaker ring = small_ring();
  const ApiId api = ring.add_api("cudaLaunchKernel");
  StringTable& strings = ring.strings();
  const uint64_t main = python_frame(strings, "train.py", "main", 12);
  const uint64_t forward = python_frame(strings, "model.py", "Net.forward", 40);
  ring.add_graph_node(
      {100, 2'500'000, 7, 3, 4242, ring.add_stack({0x1010, forward, main}), api, {}});
  ring.add_graph_node({101, 2'600'000, 7, 3, 4242, ring.add_stack({main}), api, {}});
  ring.add_graph_node({102, 2'700'000, 7, 3, 4242, 0, api, {}});
  const Recovered got = recover(ring.bytes());
  EXPECT_TRUE(got.problems.empty());
  EXPECT_TRUE(got.trace.problems.empty());
  const Process& p = got.trace.processes.at(0);
  ASSERT_EQ(p.graph_nodes.size(), 3u);
  EXPECT_EQ(p.stacks.lines(p.graph_nodes.at(100).stack),
            (Lines{"0x1010", "Net.forward (model.py:40)", "main (train.py:12)"}));
  EXPECT_EQ(p.stacks.lines(p.graph_nodes.at(101).stack), Lines{"main (train.py:12)"});
  EXPECT_EQ(p.graph_nodes.at(102).stack, StackIndex::none);
}

}  // namespace
}  // namespace gpuprof::test
