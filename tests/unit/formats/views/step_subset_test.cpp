// SPDX-License-Identifier: Apache-2.0
// Some steps of a trace: which events are theirs, and that nothing points at what is left out.
#include "formats/views/step_subset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <vector>

#include "formats/trace/names.h"
#include "formats/views/left_out_text.h"
#include "formats/views/memory_curves.h"
#include "formats/views/slices.h"
#include "tests/unit/support/dump_maker.h"
#include "tests/unit/support/rank_job.h"
#include "tests/unit/support/trace_maker.h"

namespace gpuprof::test {
namespace {

constexpr int64_t kUs = 1000;
constexpr int64_t kStart = kEpochNs + 4'000'000;  // of ticks_at(0)

// Four steps, 5 to 8, of 100 us each. In each: a launch whose kernel runs in the next step, with a
// driver call inside; an allocation of (step - 4) * 1000 bytes, which the next step frees; an
// operator around the launch. Kernels without a call lie on the same stream.
class StepSubset : public testing::Test {
 protected:
  static constexpr uint64_t kStepUs = 100;
  static constexpr int kFirst = 5, kSteps = 4;

  StepSubset() : encoder_(names_) {
    encoder_.begin(0, 1);
    for (int i = 0; i < kSteps; ++i) one_step(i);
    ByteBuffer bytes;
    append(bytes, ChunkKind::header, make_header(1));
    append_events(bytes, encoder_);
    std::vector<uint64_t> boundaries;
    for (uint64_t i = 0; i <= kSteps; ++i) boundaries.push_back(ticks_at(i * kStepUs));
    append_steps(bytes, boundaries, kFirst, 1);
    append(bytes, ChunkKind::summary,
           make_summary(ticks_at(kSteps * kStepUs), kFirst, kFirst + kSteps - 1));
    bytes_ = view(bytes);
    EXPECT_TRUE(whole().problems.empty());
  }

  Trace whole() const { return load(bytes_); }
  Trace kept(const std::set<uint64_t>& steps, size_t without = 0) const {
    Trace trace = whole();
    EXPECT_EQ(keep_steps(trace, [&](uint64_t step) { return steps.contains(step); }), without);
    return trace;
  }

  // Kind and begin, in us, of all events.
  static std::multiset<std::pair<std::string, int64_t>> events_of(const Trace& trace) {
    std::multiset<std::pair<std::string, int64_t>> out;
    for (const Process& process : trace.processes) {
      for (const Event event : process.events) {
        out.emplace(kind_name(trace.shape(event).kind), (event.begin - kStart) / kUs);
      }
    }
    return out;
  }

 private:
  void one_step(int i) {
    const uint64_t at = static_cast<uint64_t>(i) * kStepUs;
    const auto step = static_cast<uint32_t>(i);
    range(at + 60, at + 160, "late range");
    record(Kind::op, at + 8, at + 20, {}, 0).framework.name = names_.intern("aten::mm");
    record(Kind::launch, at + 10, at + 15, "cudaLaunchKernel", 1 + step);
    Record& inner = record(Kind::launch, at + 11, at + 14, "cuLaunchKernel", 1 + step);
    inner.flags = kFlagFromCallback | kFlagDriver;
    kernel(at + 120, at + 150, 1 + step);
    kernel(at + 155, at + 160, 0);
    Record& alloc = record(Kind::alloc, at + 30, at + 33, "cudaMalloc", 0);
    alloc.memory.address = 0x1000 * (step + 1);
    alloc.memory.bytes = 1000 * (step + 1);
    if (i > 0) {
      record(Kind::dealloc, at + 40, at + 41, "cudaFree", 0).memory.address = 0x1000 * step;
    }
    // A call that begins in one step and launches in the next.
    record(Kind::sync, at + 90, at + 107, "cudaDeviceSynchronize", 100 + step);
    record(Kind::call, at + 102, at + 104, "cuCtxSynchronize", 0);
    flush();
  }
  Record& record(Kind kind, uint64_t begin_us, uint64_t end_us, std::string_view api,
                 uint32_t correlation) {
    Record r = make_record(kind, ticks_at(begin_us), ticks_at(end_us));
    if (!api.empty()) r.api = names_.api(api, api.starts_with("cuda") ? 1 : 2);
    r.correlation = correlation;
    records_.push_back(r);
    return records_.back();
  }
  void range(uint64_t begin_us, uint64_t end_us, std::string_view text) {
    record(Kind::nvtx_range, begin_us, end_us, {}, 0).nvtx.message = names_.intern(text);
  }
  void kernel(uint64_t begin_us, uint64_t end_us, uint32_t correlation) {
    Record& r = record(Kind::gpu_kernel, begin_us, end_us, {}, correlation);
    r.gpu_kernel.name = names_.intern("_Z4gemmPf");
    r.gpu_kernel.stream = 7, r.gpu_kernel.context = 1;
  }
  void flush() {
    for (const Record& each : records_) {
      if (!encoder_.add(each, 4242, "main")) throw std::bad_alloc();
    }
    records_.clear();
  }

  MemoryNames names_;
  BatchEncoder encoder_;
  std::vector<Record> records_;
  std::string bytes_;
};

// Whatever one event says of another is there and says the same back.
void check_references(const Trace& trace) {
  for (const Process& process : trace.processes) {
    const auto count = static_cast<uint32_t>(process.events.size());
    const auto there = [&](EventIndex event) {
      return event == EventIndex::none || number(event) < count;
    };
    uint32_t next = 0;
    for (const Lane& lane : process.lanes) {
      EXPECT_EQ(lane.first_event, next);
      next += lane.event_count;
    }
    EXPECT_EQ(next, count);
    for (const Event event : process.events) {
      ASSERT_TRUE(there(event.partner) && there(event.next_sibling));
      ASSERT_LT(event.extra, process.extras.size());
      if (event.partner == EventIndex::none) continue;
      const Event other = process.event(event.partner);
      EXPECT_EQ(other.correlation, event.correlation);
      EXPECT_NE(is_gpu_kind(trace.shape(event).kind), is_gpu_kind(trace.shape(other).kind));
    }
    for (const CollectiveKernel& pair : process.collective_kernels) {
      ASSERT_TRUE(number(pair.collective) < count && number(pair.kernel) < count);
      EXPECT_EQ(trace.shape_of(process, pair.collective).kind, Kind::collective);
      EXPECT_EQ(trace.shape_of(process, pair.kernel).kind, Kind::gpu_kernel);
    }
    for (const EventIndex event : process.shadowed) EXPECT_LT(number(event), count);
    process.operators.each([&](size_t event, EventIndex by) {
      EXPECT_LT(event, count);
      EXPECT_LT(number(by), count);
    });
  }
}

TEST_F(StepSubset, WorkGoesWithItsCallAndCallsWithTheOuterOne) {
  const Trace trace = kept({6});
  EXPECT_EQ(events_of(trace), (std::multiset<std::pair<std::string, int64_t>>{
                                  {"op", 108},
                                  {"launch", 110},
                                  {"launch", 111},
                                  {"alloc", 130},
                                  {"dealloc", 140},
                                  {"nvtx_range", 160},
                                  {"sync", 190},
                                  {"call", 202},
                                  {"gpu_kernel", 220},     // launched in the step
                                  {"gpu_kernel", 255}}));  // what it stands behind is
  check_references(trace);
  const Process& process = trace.processes.at(0);
  ASSERT_EQ(process.window_steps().size(), 1u);
  EXPECT_EQ(process.window_steps()[0].step, 6u);
  EXPECT_EQ(process.window_begin, kStart + 100 * kUs);
  EXPECT_EQ(process.window_end, kStart + 200 * kUs);
  EXPECT_EQ(process.summary.events(), 10u);
  EXPECT_EQ(process.shadowed.size(), 1u);
  const auto op = std::find_if(process.events.begin(), process.events.end(),
                               [&](const Event& e) { return trace.shape(e).kind == Kind::op; });
  for (const Event event : process.events) {
    const Shape& shape = trace.shape(event);
    if (shape.kind == Kind::launch) {
      EXPECT_EQ(process.operator_of(event), (*op).index);
    }
    if (event.partner == EventIndex::none) continue;
    EXPECT_EQ(event.correlation, 2u);
  }
}

TEST_F(StepSubset, SingleStepsAndTheRestAreTheWhole) {
  std::multiset<std::pair<std::string, int64_t>> sum;
  for (uint64_t step = kFirst; step < kFirst + kSteps; ++step) {
    const Trace trace = kept({step});
    check_references(trace);
    sum.merge(events_of(trace));
  }
  EXPECT_EQ(sum, events_of(whole()));
}

// As torch.profiler's do, some microseconds apart.
TEST_F(StepSubset, WhatLiesBetweenNeighboursBelongsToBoth) {
  const auto apart = [&](const std::set<uint64_t>& steps, uint64_t renumbered = 0) {
    Trace trace = whole();
    for (Step& step : trace.processes.at(0).steps) {
      step.end -= 15 * kUs;
      if (renumbered && step.step >= renumbered) step.step += 10;
    }
    trace.processes.at(0).summary.set_last_step(100);
    keep_steps(trace, [&](uint64_t step) { return steps.contains(step); });
    check_references(trace);
    return trace;
  };
  const auto has = [](const Trace& trace, const char* kind, int64_t us) {
    return events_of(trace).contains({kind, us});
  };
  const Trace both = apart({6, 7});
  EXPECT_TRUE(has(both, "sync", 190) && has(both, "call", 202));
  EXPECT_FALSE(has(both, "sync", 90) || has(both, "sync", 290));
  ASSERT_EQ(both.processes.at(0).stretches.size(), 1u);
  EXPECT_EQ(both.processes.at(0).window_end, kStart + 285 * kUs);
  EXPECT_EQ(apart({6, 8}).processes.at(0).stretches.size(), 2u);
  EXPECT_FALSE(has(apart({6}), "sync", 190) || has(apart({7}), "sync", 190));
  // Steps 6 and 17: of two windows that are in one file.
  const Trace windows = apart({6, 17}, 7);
  EXPECT_EQ(windows.processes.at(0).stretches.size(), 2u);
  EXPECT_FALSE(has(windows, "sync", 190));
}

TEST_F(StepSubset, MemoryBeginsWithWhatWasAllocated) {
  const auto curve = [](const Trace& trace) {
    std::vector<std::pair<int64_t, int64_t>> out;  // time in us, total
    for (const MemoryPoint& point : memory_curves(trace, trace.processes.at(0)).device) {
      out.emplace_back((point.time - kStart) / kUs, point.total);
    }
    return out;
  };
  const auto all = curve(whole());
  ASSERT_EQ(all, (std::vector<std::pair<int64_t, int64_t>>{{33, 1000},
                                                           {133, 3000},
                                                           {140, 2000},
                                                           {233, 5000},
                                                           {240, 3000},
                                                           {333, 7000},
                                                           {340, 4000}}));
  const auto part = [&](size_t first, size_t end) {
    return std::vector(all.begin() + static_cast<ptrdiff_t>(first),
                       all.begin() + static_cast<ptrdiff_t>(end));
  };
  const Trace third = kept({7});
  EXPECT_EQ(curve(third), part(3, 5));
  EXPECT_EQ(memory_curves(third, third.processes.at(0)).device_before, 2000);
  const LiveMemory* const live = third.processes.at(0).live_at(LiveMoment::window_begins);
  ASSERT_NE(live, nullptr);
  ASSERT_EQ(live->allocations.size(), 1u);
  EXPECT_EQ(live->allocations[0].address, 0x2000u);
  EXPECT_EQ(third.text(live->allocations[0].api), "cudaMalloc");
  EXPECT_EQ(curve(kept({6, 7})), part(1, 5));
  auto apart = part(0, 1);
  apart.insert(apart.end(), all.begin() + 3, all.begin() + 5);
  EXPECT_EQ(curve(kept({5, 7})), apart) << "a gap hides what was allocated in it";
  EXPECT_EQ(kept({5, 7}).processes.at(0).stretches.size(), 2u);
  EXPECT_EQ(kept({5, 6}).processes.at(0).stretches.size(), 1u);
}

TEST_F(StepSubset, OneProcessWithoutTheStepIsLeftOut) {
  EXPECT_TRUE(kept({99}, 1).processes.empty());
  Trace two = busy_trace(2);  // of steps 12 and 13
  ASSERT_EQ(two.processes.size(), 2u);
  two.processes[0].steps.pop_back();
  EXPECT_EQ(keep_steps(two, [](uint64_t step) { return step == 13; }), 1u);
  ASSERT_EQ(two.processes.size(), 1u);
  EXPECT_EQ(two.processes[0].header.rank(), 1);
}

// Steps 5 and 6 in window 0, 15 and 16 in window 1, of 100 us each; a data loader's worker has a
// mark in each step.
std::string loader_window(uint32_t window) {
  dump::Header header = make_header(1);
  header.set_window(window);
  ByteBuffer bytes;
  append(bytes, ChunkKind::header, header);
  const uint64_t first = 5 + 10 * window, at = 1000 * window;
  append_steps(bytes, {ticks_at(at), ticks_at(at + 100), ticks_at(at + 200)}, first, 1);
  append(bytes, ChunkKind::summary, make_summary(ticks_at(at + 200), first, first + 1));
  return std::string(view(bytes));
}

std::string worker_window(uint32_t window, uint64_t parent_start = 0) {
  dump::Header header = make_header(1);
  header.set_window(window);
  header.set_pid(9);
  header.set_parent_pid(4242);
  header.set_parent_start_time(parent_start);
  MemoryNames names;
  BatchEncoder encoder(names);
  encoder.begin(window, 1);
  for (const uint64_t us : {50, 150}) {
    const uint64_t at = ticks_at(1000 * window + us);
    Record mark = make_record(Kind::nvtx_mark, at, at);
    mark.nvtx.message = names.intern("batch");
    if (!encoder.add(mark, 9, "worker")) throw std::bad_alloc();
  }
  ByteBuffer bytes;
  append(bytes, ChunkKind::header, header);
  append_events(bytes, encoder);
  append(bytes, ChunkKind::summary, make_summary(ticks_at(1000 * window + 200)));
  return std::string(view(bytes));
}

// Begin, end and number of events, in us, of each window that is left of a worker.
std::vector<std::array<int64_t, 3>> workers_of(const std::string& dumps,
                                               const std::set<uint64_t>& steps) {
  Trace trace = load(dumps);
  EXPECT_TRUE(trace.problems.empty());
  EXPECT_EQ(keep_steps(trace, [&](uint64_t step) { return steps.contains(step); }), 0u);
  std::vector<std::array<int64_t, 3>> out;
  for (const Process& process : trace.processes) {
    if (!process.is_data_worker()) continue;
    out.push_back({(process.window_begin - kStart) / kUs, (process.window_end - kStart) / kUs,
                   static_cast<int64_t>(process.events.size())});
  }
  return out;
}

TEST_F(StepSubset, DataWorkersHaveTheStepsOfTheirWindow) {
  using Windows = std::vector<std::array<int64_t, 3>>;
  const std::string dumps =
      loader_window(0) + loader_window(1) + worker_window(0) + worker_window(1);
  EXPECT_EQ(workers_of(dumps, {5, 6, 15, 16}), (Windows{{0, 200, 2}, {1000, 1200, 2}}));
  EXPECT_EQ(workers_of(dumps, {6, 15}), (Windows{{100, 200, 1}, {1000, 1100, 1}}));
  EXPECT_EQ(workers_of(dumps, {16}), (Windows{{1100, 1200, 1}}));
  // Of a process that was there before with this pid.
  EXPECT_EQ(workers_of(loader_window(0) + worker_window(0, 77), {5}), Windows{});
}

TEST_F(StepSubset, CountersKeepTheirLevelAndSamplesTheirTime) {
  Trace trace = whole();
  Process& process = trace.processes.at(0);
  const auto at = [](int64_t us) { return kStart + us * kUs; };
  process.counters.push_back({0, Counter::power, {{at(10), 300}, {at(190), 400}, {at(290), 500}}});
  for (const int64_t us : {90, 150, 250}) process.samples.push_back({at(us), 4242, {}});
  keep_steps(trace, [](uint64_t step) { return step == 6; });
  ASSERT_EQ(process.counters[0].points.size(), 2u);
  EXPECT_EQ(process.counters[0].points[0].time, at(100));
  EXPECT_EQ(process.counters[0].points[0].value, 300u);
  EXPECT_EQ(process.counters[0].points[1].time, at(190));
  ASSERT_EQ(process.samples.size(), 1u);
  EXPECT_EQ(process.samples[0].time, at(150));
}

TEST_F(StepSubset, ReferencesToWhatIsLeftOutAreGone) {
  Trace trace = whole();
  Process& process = trace.processes.at(0);
  std::vector<EventIndex> ops;
  for (const Event event : process.events) {
    if (trace.shape(event).kind == Kind::op) ops.push_back(event.index);
  }
  process.forward_backward = {{ops[0], ops[1], 1}, {ops[1], ops[1], 2}};
  keep_steps(trace, [](uint64_t step) { return step == 6; });
  ASSERT_EQ(process.forward_backward.size(), 1u);
  EXPECT_EQ(process.forward_backward[0].id, 2u);
  EXPECT_EQ(trace.shape_of(process, process.forward_backward[0].forward).kind, Kind::op);
}

TEST(StepSubsetOfJob, EachStepOfEachRankHasItsCollectives) {
  RankJob job;
  job.grouped = 2, job.split = 2, job.shrunk = true, job.message = 100'000, job.late_windows = 1;
  job.copy = 20'000, job.allocation = 10'000;
  std::map<int, std::string> bytes;
  run_rank_job(job, [&](int rank, std::string_view part) { bytes[rank] += part; });
  std::string all;
  for (const auto& [rank, text] : bytes) all += text;
  const Trace whole = load(all);
  size_t events = 0, pairs = 0, whole_pairs = 0, whole_events = 0;
  for (const Process& process : whole.processes) {
    whole_pairs += process.collective_kernels.size();
    whole_events += process.events.size();
  }
  for (uint64_t step = 0; step < 3; ++step) {
    Trace trace = load(all);
    EXPECT_EQ(keep_steps(trace, [&](uint64_t each) { return each == step; }), step ? 0u : 2u);
    check_references(trace);
    for (const Process& process : trace.processes) {
      events += process.events.size();
      pairs += process.collective_kernels.size();
      for (const Event event : process.events) {
        EXPECT_GE(event.begin, process.window_begin);
        if (is_stream_work(trace.shape(event).kind)) {
          EXPECT_NE(event.partner, EventIndex::none);
        }
      }
    }
  }
  EXPECT_EQ(pairs, whole_pairs);
  EXPECT_GT(pairs, 0u);
  EXPECT_EQ(events, whole_events);
}

TEST_F(StepSubset, WhatABudgetLeavesOutLaterIsNotMissing) {
  Trace trace = whole();
  Process& process = trace.processes.front();
  process.budget.left_out = {{ShedKind::stacks, process.steps[0].begin + 1, 1},
                             {ShedKind::calls, process.steps[3].begin, 1}};
  keep_steps(trace, [](uint64_t step) { return step == 6 || step == 7; });
  ASSERT_EQ(process.budget.left_out.size(), 1u);
  EXPECT_EQ(process.budget.left_out[0].kind, ShedKind::stacks);
  EXPECT_EQ(left_out_list(process), "call stacks in the whole window");
}

}  // namespace
}  // namespace gpuprof::test
