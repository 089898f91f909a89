// SPDX-License-Identifier: Apache-2.0
// Dumps of a process with a window: steps of 1 ms, each with a launch and its kernel, and what a
// test adds. Times in microseconds from the step's begin.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/unit/support/trace_maker.h"

namespace gpuprof::test {

inline constexpr uint64_t kStepUs = 1000;

class RunMaker {
 public:
  // Step lengths; those before `window_from` are in the step log alone.
  explicit RunMaker(std::vector<uint64_t> lengths_us, size_t window_from = 0,
                    uint64_t kernel_pct = 90)
      : window_from_(window_from), lengths_(std::move(lengths_us)) {
    encoder_.begin(0, 1);
    uint64_t at = 0;
    for (size_t i = 0; i < lengths_.size(); ++i) {
      boundaries_.push_back(ticks_at(at));
      if (i >= window_from) starts_.push_back(at);
      at += lengths_[i];
    }
    boundaries_.push_back(ticks_at(at));
    for (size_t i = 0; i < starts_.size(); ++i) {
      add_kernel(i, lengths_[window_from + i] * kernel_pct / 100);
    }
  }
  explicit RunMaker(size_t steps) : RunMaker(std::vector<uint64_t>(steps, kStepUs)) {}

  MemoryNames names;
  dump::Header header = make_header(1);
  dump::Counters counters;
  dump::Budget budget;  // none where nothing is allowed
  uint32_t window = 0;
  std::string gpu_times_from, step_source;
  uint64_t gpu_time_error_ns = 0;
  uint32_t blocks = 4096;  // of each kernel launched from now on
  uint32_t threads = 256;  // of each of them
  std::string kernel_name = "_Z4gemmPf";

  size_t steps() const { return starts_.size(); }
  uint64_t start_us(size_t step) const { return starts_.at(step); }

  void add(Record record, uint32_t correlation = 0) {
    record.correlation = correlation;
    if (!encoder_.add(record, 4242, "python")) throw std::bad_alloc();
  }

  // Launched 10 us into the step.
  void add_kernel(size_t step, uint64_t us, uint64_t begin_us = 20) {
    Record launch =
        make_record(Kind::launch, at(step, 10), at(step, 15), names.api("cudaLaunchKernel"));
    launch.launch.function = names.intern(kernel_name);
    launch.flags = kFlagNamed;
    add(launch, ++correlation_);
    Record kernel = make_record(Kind::gpu_kernel, at(step, begin_us), at(step, begin_us + us));
    kernel.gpu_kernel.name = names.intern(kernel_name);
    kernel.gpu_kernel.shape =
        names.shape({{blocks, 1, 1}, {threads, 1, 1}, 0, 0, 32, 1, 1, 1, 0, 0});
    kernel.gpu_kernel.stream = 7, kernel.gpu_kernel.context = 1;
    add(kernel, correlation_);
  }

  // One that is timed as a whole.
  void add_graph(size_t step, uint64_t us, uint64_t begin_us) {
    add(make_record(Kind::launch, at(step, 10), at(step, 15), names.api("cudaGraphLaunch")),
        ++correlation_);
    Record graph = make_record(Kind::gpu_graph, at(step, begin_us), at(step, begin_us + us));
    graph.gpu_kernel.graph = 5, graph.gpu_kernel.stream = 7, graph.gpu_kernel.context = 1;
    add(graph, correlation_);
  }

  void add_wait(size_t step, uint64_t begin_us, uint64_t end_us) {
    add(make_record(Kind::sync, at(step, begin_us), at(step, end_us),
                    names.api("cudaDeviceSynchronize")));
  }

  void add_copy(size_t step, bool to_gpu, uint64_t bytes) {
    Record call =
        make_record(Kind::copy, at(step, 940), at(step, 945), names.api("cudaMemcpyAsync"));
    call.copy.bytes = bytes, call.copy.direction = to_gpu ? 1 : 2;
    add(call, ++correlation_);
    Record copy = make_record(Kind::gpu_copy, at(step, 950), at(step, 955));
    copy.gpu_copy.bytes = bytes, copy.gpu_copy.stream = 7, copy.gpu_copy.context = 1;
    copy.gpu_copy.direction = to_gpu ? 1 : 2;
    copy.gpu_copy.source_kind = to_gpu ? 2 : 3, copy.gpu_copy.destination_kind = to_gpu ? 3 : 2;
    copy.gpu_copy.peer_source = copy.gpu_copy.peer_destination = 0xffff;
    add(copy, correlation_);
  }

  // One after the other in each step.
  void give(size_t step, uint64_t address, uint64_t bytes, std::string_view range = "") {
    const uint64_t us = next_us(step);
    if (!range.empty()) {
      Record r = make_record(Kind::nvtx_range, at(step, us), at(step, us + 4));
      r.nvtx.message = names.intern(range);
      add(r);
    }
    Record r =
        make_record(Kind::alloc, at(step, us + 1), at(step, us + 2), names.api("cudaMalloc"));
    r.memory.address = address, r.memory.bytes = bytes;
    add(r);
  }
  // A call that fails with an error of CUDA's.
  void refuse(size_t step, uint64_t bytes, int32_t error) {
    const uint64_t us = next_us(step);
    Record r = make_record(Kind::alloc, at(step, us), at(step, us + 1), names.api("cudaMalloc"));
    r.memory.bytes = bytes;
    r.memory.result = static_cast<int16_t>(error);
    add(r);
  }
  void take(size_t step, uint64_t address) {
    const uint64_t us = next_us(step);
    Record r = make_record(Kind::dealloc, at(step, us), at(step, us + 1), names.api("cudaFree"));
    r.memory.address = address;
    add(r);
  }

  // GPUPROF_BUDGET left out a kind from then on.
  void leave_out(ShedKind kind, size_t step, uint64_t us, uint32_t cost_ppm) {
    budget.set_allowed_ppm(20000);
    dump::Shed* const shed = budget.add_shed();
    shed->set_kind(static_cast<uint32_t>(kind));
    shed->set_since_ticks(at(step, us));
    shed->set_cost_ppm(cost_ppm);
    budget.set_since_ticks(shed->since_ticks());
  }

  void add_counter(Counter counter, const std::vector<uint64_t>& values) {
    dump::CounterSeries* const series = counters.add_series();
    series->set_device(0);
    series->set_counter(static_cast<uint32_t>(counter));
    // Each is read a little after the one before it.
    uint64_t time = ticks_at(static_cast<uint64_t>(counter)) >> 1, before = 0;
    int64_t last = 0;
    for (const uint64_t value : values) {
      series->add_time(static_cast<int64_t>(time - before));
      series->add_value(static_cast<int64_t>(value) - last);
      before = time;
      last = static_cast<int64_t>(value);
      time += (100 * kTicksPerUs) >> 1;
    }
  }

  std::string dump() {
    ByteBuffer bytes;
    header.set_window(window);
    header.set_window_begin_ticks(boundaries_[window_from_]);
    append(bytes, ChunkKind::header, header);
    append_events(bytes, encoder_);
    append_steps(bytes, boundaries_, 0, 1);
    if (counters.series_size()) append(bytes, ChunkKind::counters, counters);
    if (budget.allowed_ppm()) append(bytes, ChunkKind::budget, budget);
    dump::Summary summary = make_summary(boundaries_.back(), static_cast<uint32_t>(window_from_),
                                         static_cast<uint32_t>(lengths_.size() - 1));
    summary.set_window_begin_ticks(boundaries_[window_from_]);
    summary.set_gpu_times_from(gpu_times_from);
    if (!step_source.empty()) summary.set_step_source(step_source);
    summary.set_gpu_time_error_ns(gpu_time_error_ns);
    append(bytes, ChunkKind::summary, summary);
    return std::string(view(bytes));
  }

 private:
  uint64_t at(size_t step, uint64_t us) const { return ticks_at(starts_.at(step) + us); }

  uint64_t next_us(size_t step) {
    const uint64_t first = starts_.at(step) + 920;
    next_us_ = std::max(next_us_ + 5, first);
    return next_us_ - starts_.at(step);
  }

  size_t window_from_;
  uint64_t next_us_ = 0;  // since the run began
  std::vector<uint64_t> lengths_, starts_, boundaries_;
  BatchEncoder encoder_{names};
  uint32_t correlation_ = 0;
};

}  // namespace gpuprof::test
