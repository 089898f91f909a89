// SPDX-License-Identifier: Apache-2.0
// Samples of host memory: what they stand for, from records to sums.
#include "formats/trace/heap.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "formats/core/plain_math.h"
#include "tests/unit/support/dump_maker.h"
#include "tools/analysis/findings.h"
#include "tools/analysis/host_memory.h"
#include "tools/analysis/report.h"

namespace gpuprof::test {
namespace {

constexpr uint64_t kInterval = 1000;

struct HeapDump {
  Record record(uint64_t us, uint64_t address, uint64_t size, bool released) {
    const uint64_t ticks = 10'000'000 + us * kTicksPerUs;
    Record r = make_record(Kind::heap, ticks, ticks);
    r.heap = {address, size, interval, names.intern(released ? "free" : "malloc"), released};
    return r;
  }
  void give(uint64_t us, uint64_t address, uint64_t size, StringId stack = 0) {
    if (stack) {
      Record before = make_record(Kind::stack, 0, 0);
      before.begin = before.end = 10'000'000 + us * kTicksPerUs;
      before.stack.stack = stack;
      records.push_back(before);
    }
    records.push_back(record(us, address, size, false));
  }
  void take(uint64_t us, uint64_t address, uint64_t size) {
    records.push_back(record(us, address, size, true));
  }
  // Steps of 100 us, if any.
  Trace read(size_t steps = 0) {
    BatchEncoder encoder(names);
    encoder.begin(0, 0);
    for (const Record& each : records) EXPECT_TRUE(encoder.add(each, 77, "worker"));
    ByteBuffer bytes;
    append(bytes, ChunkKind::header, make_header());
    append_events(bytes, encoder);
    if (steps) {
      std::vector<uint64_t> boundaries;
      for (size_t i = 0; i <= steps; ++i) boundaries.push_back(10'000'000 + i * 100 * kTicksPerUs);
      append_steps(bytes, boundaries, 0, 0);
    }
    dump::Summary summary = make_summary(10'000'000 + 2'000 * kTicksPerUs);
    if (steps) summary.set_last_step(static_cast<uint32_t>(steps - 1));
    append(bytes, ChunkKind::summary, summary);
    Trace trace = load(view(bytes));
    EXPECT_TRUE(trace.problems.empty());
    return trace;
  }

  MemoryNames names;
  std::vector<Record> records;
  uint64_t interval = kInterval;
};

TEST(Heap, SamplesComeBackAsTheyWentIn) {
  HeapDump dump;
  dump.give(5, 0x7f00'1000, 4096, dump.names.intern_stack({0x11, 0x22}));
  dump.take(9, 0x7f00'1000, 4096);
  const Trace trace = dump.read();
  const Process& process = trace.processes.at(0);
  ASSERT_EQ(process.heap.size(), 2u);
  EXPECT_EQ(process.events.size(), 0u) << "they are no events";
  EXPECT_TRUE(process.lanes.empty());
  const HeapSample &given = process.heap[0], &taken = process.heap[1];
  EXPECT_EQ(trace.text(given.call), "malloc");
  EXPECT_EQ(trace.text(taken.call), "free");
  EXPECT_EQ(given.address, 0x7f00'1000u);
  EXPECT_EQ(given.bytes, 4096u);
  EXPECT_EQ(given.interval, kInterval);
  EXPECT_EQ(given.thread, 77u);
  EXPECT_FALSE(given.released);
  EXPECT_TRUE(taken.released);
  EXPECT_EQ(taken.time - given.time, 4000);
  EXPECT_EQ(process.stacks.lines(given.stack).size(), 2u);
  EXPECT_EQ(taken.stack, StackIndex::none);
}

TEST(Heap, LogarithmIsThatOfLibm) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 100'000; ++i) {
    const double value = static_cast<double>((random() >> 11) + 1) * 0x1p-53;
    const double wanted = std::log(value);
    EXPECT_NEAR(logarithm_of(value), wanted, 1e-6 * std::max(1.0, -wanted)) << value;
  }
  EXPECT_EQ(logarithm_of(1), 0);
}

// Draws places of samples as the library does, over allocations of known sizes.
TEST(Heap, WeightsAddUpToWhatWasAllocated) {
  std::mt19937_64 random(7);
  std::exponential_distribution<double> gap(1.0 / kInterval);
  for (const uint64_t size : {10u, 300u, 1000u, 5000u}) {
    double truth = 0, sum = 0, left = gap(random);
    uint64_t samples = 0;
    while (samples < 40'000) {
      truth += static_cast<double>(size);
      left -= static_cast<double>(size);
      if (left > 0) continue;
      left = gap(random);
      sum += heap_weight(size, kInterval);
      ++samples;
    }
    EXPECT_NEAR(sum / truth, 1, 0.02) << size;  // four standard errors of 40,000 samples
  }
  EXPECT_EQ(whole_number(12.6), 13);
  EXPECT_EQ(whole_number(1e300), int64_t{1} << 60);
  EXPECT_EQ(whole_number(-1e300), -(int64_t{1} << 60));
  EXPECT_EQ(heap_weight(0, kInterval), 0);
  EXPECT_EQ(heap_weight(12, 0), 12);
  EXPECT_DOUBLE_EQ(heap_weight(1 << 30, kInterval), 1 << 30);
}

TEST(Heap, SumsByStackKnowWhatIsHeld) {
  HeapDump dump;
  const StringId a = dump.names.intern_stack({0x11}), b = dump.names.intern_stack({0x22});
  constexpr uint64_t kBig = 100 * kInterval;  // sampled for sure: stands for itself
  dump.give(1, 0x1000, kBig, a);
  dump.give(2, 0x2000, kBig, a);
  dump.give(3, 0x3000, 2 * kBig, b);
  dump.take(4, 0x1000, kBig);
  dump.take(5, 0x9000, kBig);         // of before the window
  dump.give(6, 0x3000, 3 * kBig, b);  // its release was not seen
  const Trace trace = dump.read();
  const std::vector<HeapSite> sites = heap_sites(trace.processes.at(0));
  ASSERT_EQ(sites.size(), 2u);
  EXPECT_NEAR(sites[0].bytes, 5 * kBig, 1);
  EXPECT_NEAR(sites[0].count, 2, 1e-6);
  EXPECT_NEAR(sites[0].held_bytes, 3 * kBig, 1);
  EXPECT_EQ(sites[0].samples, 2u);
  EXPECT_NEAR(sites[1].bytes, 2 * kBig, 1);
  EXPECT_NEAR(sites[1].held_bytes, kBig, 1);
  const std::vector<HeapPoint> curve = heap_curve(trace.processes[0]);
  const double levels[] = {1, 2, 4, 3, 1, 4};
  ASSERT_EQ(curve.size(), std::size(levels));
  for (size_t i = 0; i < curve.size(); ++i) {
    EXPECT_NEAR(curve[i].held_bytes, levels[i] * kBig, 1) << i;
  }
  const analysis::HostMemory memory = analysis::host_memory(trace);
  EXPECT_EQ(memory.samples, 4u);
  EXPECT_NEAR(memory.held_bytes, 4 * kBig, 1);
}

TEST(Heap, PlacesAreOfThoseWhoWantedTheMemory) {
  HeapDump dump;
  dump.give(1, 0x1000, 100 * kInterval, dump.names.intern_stack({0x11, 0x22, 0x33}));
  dump.give(2, 0x2000, 50 * kInterval, dump.names.intern_stack({0x11, 0x44}));
  Trace trace = dump.read();
  StackTable& stacks = trace.processes.at(0).stacks;
  stacks.set_frames(0x11, {{"operator new(unsigned long)", "", 0, false, false}});
  stacks.set_frames(0x22, {{"void std::vector<int>::push_back(int)", "", 0, false, false}});
  stacks.set_frames(0x33, {{"at::native::sum(at::Tensor)", "", 0, false, false}});
  stacks.set_frames(0x44, {{"main", "/home/me/train.py", 12, false, true}});
  const analysis::HostMemory memory = analysis::host_memory(trace);
  ASSERT_EQ(memory.rows.size(), 2u);
  EXPECT_EQ(memory.rows[0].place, "at::native::sum(at::Tensor)");
  EXPECT_EQ(memory.rows[1].place, "train.py:12 main");
}

std::vector<std::string> findings_of(HeapDump& dump, size_t steps) {
  std::vector<std::string> out;
  for (const analysis::Finding& each : analysis::make_report(dump.read(steps)).findings) {
    if (each.kind == analysis::FindingKind::host_memory_growth) out.push_back(each.text);
  }
  return out;
}

TEST(Heap, GrowthInEachStepIsAFinding) {
  HeapDump dump;
  for (uint64_t step = 0; step < 10; ++step) {
    dump.give(100 * step + 10, 0x10000 + step * 0x100, 100 * kInterval);
    dump.give(100 * step + 20, 0x90000, 50 * kInterval);
    dump.take(100 * step + 30, 0x90000, 50 * kInterval);
  }
  const std::vector<std::string> found = findings_of(dump, 10);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].find("grows by 97.7 KiB in each step"), std::string::npos) << found[0];
}

TEST(Heap, AFewSamplesAreNoGrowth) {
  HeapDump few, released;
  for (uint64_t step = 0; step < 10; ++step) {
    few.give(100 * step + 10, 0x10000 + step * 0x100, kInterval / 10);
    released.give(100 * step + 10, 0x10000, 100 * kInterval);
    released.take(100 * step + 90, 0x10000, 100 * kInterval);
  }
  EXPECT_TRUE(findings_of(few, 10).empty());
  EXPECT_TRUE(findings_of(released, 10).empty());
}

}  // namespace
}  // namespace gpuprof::test
