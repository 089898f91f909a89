// SPDX-License-Identifier: Apache-2.0
// A training job in virtual time: what threads and GPUs of several ranks do is computed, written as
// dumps, and known. A host thread per rank issues work at its own pace; kernels begin when issued,
// after a latency, in stream order; collectives when the last rank has come.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "formats/core/own_time.h"
#include "tests/unit/support/dump_maker.h"
#include "tests/unit/support/job.h"

namespace gpuprof::test {

class JobModel {
 public:
  explicit JobModel(const Job& job) : job_(job), random_(job.seed) {
    for (int rank = 0; rank < job.ranks; ++rank) ranks_.emplace_back();
    for (int step = 0; step < job.steps; ++step) run_step();
    for (Rank& rank : ranks_) rank.boundaries.push_back(rank.now);
  }

  Trace trace() {
    std::string bytes;
    for (size_t i = 0; i < ranks_.size(); ++i) bytes += dump_of(static_cast<int>(i));
    Trace out = load(bytes);
    for (size_t i = 0; job_.queue > 0 && i < ranks_.size(); ++i) {
      add_waits(static_cast<int>(i), out.processes[i]);
    }
    return out;
  }

  JobTruth truth() const {
    JobTruth out;
    double wall = 0;
    for (const Rank& rank : ranks_) {
      partition(rank, out.pct);
      wall += static_cast<double>(end_of(rank) - begin_of(rank));
      out.step_ns += static_cast<double>(rank.step_ends.back() - rank.step_ends[first()]) /
                     static_cast<double>(rank.step_ends.size() - 1 - first()) /
                     static_cast<double>(ranks_.size());
    }
    for (double& part : out.pct) part *= 100 / wall;
    return out;
  }

 private:
  static constexpr int64_t kLatency = 3000;
  static constexpr int64_t kWindow = 1'000'000;  // ns after the clock's first anchor
  static constexpr int kStreams = 2;             // compute, communication

  struct Piece {  // of GPU work
    int64_t begin, end, issued;
    JobPart part;
    int stream;
    uint32_t correlation;
    int kernel;  // which of a step's, -1: another
  };
  struct Span {  // of the host thread
    int64_t begin, end;
    JobPart part;
    const char* api;  // null: not a call
    uint32_t correlation;
    uint64_t value;  // stream of work, waited event
  };
  struct Interval {
    int64_t begin, end;
  };
  struct Rank {
    int64_t now = kWindow;
    std::array<int64_t, kStreams> free{};  // when each stream is idle
    std::vector<Piece> pieces;
    std::vector<Span> spans;
    std::vector<int64_t> boundaries, step_ends;
    std::vector<std::pair<int64_t, int64_t>> optimizers;  // when each ran
    uint32_t correlation = 0;
    int64_t ran = 0;              // since it last waited for a processor
    std::vector<Interval> waits;  // for one
    int64_t busy_until() const { return *std::max_element(free.begin(), free.end()); }
  };

  int64_t noisy(int64_t length) {
    return length + length * static_cast<int64_t>(random_() % 401) / 10000 - length * 2 / 100;
  }

  // `asleep` of the call's length the thread waits for the GPU.
  void call(Rank& rank, const char* api, int64_t length, JobPart part, uint64_t value = 0,
            int64_t asleep = 0) {
    const int64_t begin = rank.now;
    sleep(rank, asleep);
    run(rank, length - asleep);
    rank.spans.push_back({begin, rank.now, part, api, ++rank.correlation, value});
  }

  void run(Rank& rank, int64_t length) {
    while (job_.queue > 0 && rank.ran + length >= job_.slice) {
      const int64_t until = rank.now + std::max<int64_t>(0, job_.slice - rank.ran);
      length -= until - rank.now;
      rank.waits.push_back({until, until + job_.queue});
      rank.now = until + job_.queue;
      rank.ran = 0;
    }
    rank.ran += length;
    rank.now += length;
  }

  void sleep(Rank& rank, int64_t length) {
    rank.now += length;
    if (job_.queue == 0) return;
    const int64_t entitled = length * job_.slice / (job_.slice + job_.queue);
    rank.ran = std::max<int64_t>(0, rank.ran - entitled);
  }

  // As the collector has it: at step boundaries, and after a call that ends more than a millisecond
  // after the one before, whose silence then has all of it.
  void add_waits(int number, Process& process) const {
    const Rank& rank = ranks_[static_cast<size_t>(number)];
    std::vector<Interval> readings;  // the silence before it, if any, and the reading
    for (const int64_t time : rank.boundaries) readings.push_back({time, time});
    int64_t last = begin_of(rank);
    for (const Span& span : rank.spans) {
      if (!span.api || span.begin < begin_of(rank)) continue;
      if (span.end - last > 1'000'000) readings.push_back({last, span.end});
      last = span.end;
    }
    std::sort(readings.begin(), readings.end(),
              [](const Interval& a, const Interval& b) { return a.end < b.end; });
    std::vector<CounterSeries::Point> points;
    uint64_t before = 0;
    for (const Interval& reading : readings) {
      if (reading.end < begin_of(rank)) continue;
      uint64_t sum = 0;
      for (const Interval& wait : rank.waits) {
        sum += static_cast<uint64_t>(
            std::max<int64_t>(0, std::min(wait.end, reading.end) - wait.begin));
      }
      const auto at = [&](int64_t time) { return process.window_begin + time - begin_of(rank); };
      if (!points.empty() && at(reading.begin) > points.back().time) {
        points.push_back({at(reading.begin), before});
      }
      points.push_back({at(reading.end), sum});
      before = sum;
    }
    process.processor_waits.push_back({static_cast<uint32_t>(4242 + number), std::move(points)});
  }

  Piece& work(Rank& rank, int stream, int64_t length, JobPart part) {
    const int64_t begin = std::max(rank.now + kLatency, rank.free[static_cast<size_t>(stream)]);
    rank.free[static_cast<size_t>(stream)] = begin + length;
    rank.pieces.push_back(
        {begin, begin + length, rank.now, part, stream, rank.correlation + 1, -1});
    return rank.pieces.back();
  }

  void run_step() {
    slower_ = 1 + job_.noise * static_cast<double>(random_() % 1001) / 1000;
    std::vector<double> factors(ranks_.size(), 1);
    if (job_.slow_rank >= 0) factors[static_cast<size_t>(job_.slow_rank)] = job_.slow;
    for (double& factor : factors) {
      if (job_.jitter > 0) factor += job_.jitter * static_cast<double>(random_() % 1001) / 1000;
    }
    for (size_t r = 0; r < ranks_.size(); ++r) {
      Rank& rank = ranks_[r];
      rank.boundaries.push_back(rank.now);
      begin_step(rank);
      const bool pauses = job_.pausing_rank == static_cast<int>(r) && job_.pausing_step == step_;
      if (pauses) rank.now += job_.pause_once;
    }
    for (int i = 0; i < job_.kernels; ++i) {
      if (job_.layer == Job::Layer::fused && i % 8 == 5) continue;
      const bool both = job_.layer == Job::Layer::fused && i % 8 == 4;
      const double family = i == 1       ? job_.norm
                            : i % 4 == 3 ? job_.softmax
                            : both       ? 2 * job_.fused_time
                                         : 1;
      const auto length =
          static_cast<int64_t>(static_cast<double>(noisy(job_.kernel)) * family * slower_);
      for (size_t r = 0; r < ranks_.size(); ++r) {
        Rank& rank = ranks_[r];
        profile(rank, job_.stacks);
        const int64_t stall = i == job_.stalled_kernel ? job_.stall : 0;
        rank.now += stall;
        work(rank, 0, static_cast<int64_t>(static_cast<double>(length) * factors[r]),
             JobPart::compute)
            .kernel = i;
        rank.now -= stall;
        call(rank, "cudaLaunchKernel", stall + job_.issue, JobPart::launch);
        run(rank, job_.pause);
      }
      if (job_.collective && i % 6 == 5) collective();
    }
    for (Rank& rank : ranks_) end_step(rank);
    ++step_;
  }

  void begin_step(Rank& rank) {
    if (job_.data && (job_.late_batch < 0 || job_.late_batch == step_)) {
      const auto data = static_cast<int64_t>(static_cast<double>(job_.data) * slower_);
      const int64_t begin = rank.now;
      run(rank, data);
      rank.spans.push_back({begin, rank.now, JobPart::data, nullptr, 0, 0});
    }
    run(rank, 1000);
    if (!job_.copy) return;
    const Piece copy = work(rank, 0, job_.copy, JobPart::transfer);
    // Of pageable memory it returns once the last of it is staged, a little before it is over (CUDA
    // runtime API, "API synchronization behavior"; 6 to 11 us on an H200).
    const int64_t staged = copy.end - std::min<int64_t>(8000, job_.copy / 2);
    const int64_t length = job_.blocking_copy ? staged - rank.now : job_.issue;
    call(rank, "cudaMemcpyAsync", length, JobPart::launch, 0, job_.blocking_copy ? length : 0);
    run(rank, 1000);
  }

  void collective() {
    int64_t begin = 0;
    const int stream = job_.overlap ? 1 : 0;
    for (Rank& rank : ranks_) {
      if (job_.overlap) {
        // The communication stream waits for the gradients.
        call(rank, "cudaEventRecord", 1000, JobPart::launch, kCompute);
        call(rank, "cudaStreamWaitEvent", 1000, JobPart::launch, kComm);
        rank.free[1] = std::max(rank.free[1], rank.free[0]);
      }
      const Piece& piece = work(rank, stream, job_.collective, JobPart::communication);
      begin = std::max(begin, piece.begin);
      call(rank, "cudaLaunchKernelExC", job_.issue, JobPart::launch);
      run(rank, job_.pause);
    }
    for (Rank& rank : ranks_) {
      rank.pieces.back().end = begin + job_.collective;
      rank.free[static_cast<size_t>(stream)] = begin + job_.collective;
    }
  }

  void end_step(Rank& rank) {
    if (job_.overlap && job_.collective) {
      call(rank, "cudaEventRecord", 1000, JobPart::launch, kComm);
      call(rank, "cudaStreamWaitEvent", 1000, JobPart::launch, kCompute);
      rank.free[0] = std::max(rank.free[0], rank.free[1]);
    }
    const int64_t optimizer = rank.now;
    work(rank, 0, noisy(job_.kernel / 2), JobPart::compute);
    call(rank, "cudaLaunchKernel", job_.issue, JobPart::launch);
    rank.optimizers.emplace_back(optimizer, rank.now);
    run(rank, 1000);
    for (int i = 0; i < job_.allocations; ++i) {
      call(rank, "cudaMalloc", job_.allocation, JobPart::allocation);
      run(rank, 500);
      const int64_t wait = std::max<int64_t>(0, rank.busy_until() - rank.now);
      call(rank, "cudaFree", wait + job_.allocation, JobPart::allocation, 0, wait);
      run(rank, 500);
    }
    rank.step_ends.push_back(rank.busy_until());
    const bool waits = job_.syncing_rank >= 0 && &rank == &ranks_[job_.syncing_rank];
    if (waits || (step_ + 1) % job_.sync_every == 0) {
      const int64_t wait = std::max<int64_t>(0, rank.busy_until() - rank.now);
      call(rank, "cudaDeviceSynchronize", wait + 4000, JobPart::sync, 0, wait);
      run(rank, job_.after_sync);
    }
    profile(rank, job_.profiling);
    run(rank, job_.logging);
  }

  void profile(Rank& rank, int64_t length) {
    if (length == 0) return;
    const int64_t begin = rank.now;
    run(rank, length);
    rank.spans.push_back({begin, rank.now, JobPart::profiler, nullptr, 0, length == job_.stacks});
  }

  size_t first() const { return static_cast<size_t>(job_.unrecorded); }
  int64_t begin_of(const Rank& rank) const { return rank.boundaries[first()]; }
  // Of the last step; of a window without steps, of its last work.
  int64_t end_of(const Rank& rank) const {
    const int64_t last = rank.boundaries.back();
    return job_.marked ? last : std::max(last, rank.busy_until());
  }

  // The definitions of docs/REPORT.md on what the model knows, moment by moment.
  void partition(const Rank& rank, std::array<double, 10>& parts) const {
    const int64_t first = begin_of(rank), last = end_of(rank);
    std::vector<int64_t> edges{first, last};
    for (const Piece& p : rank.pieces) edges.insert(edges.end(), {p.begin, p.end});
    for (const Span& s : rank.spans) edges.insert(edges.end(), {s.begin, s.end});
    std::sort(edges.begin(), edges.end());
    int64_t gap_begin = first;
    for (size_t i = 0; i + 1 < edges.size(); ++i) {
      const int64_t begin = std::max(edges[i], first), end = std::min(edges[i + 1], last);
      if (begin >= end) continue;
      const auto length = static_cast<double>(end - begin);
      const JobPart busy = busy_with(rank, begin);
      if (busy != JobPart::other) {
        parts[static_cast<size_t>(busy)] += length;
        gap_begin = end;
      } else {
        parts[static_cast<size_t>(idle_with(rank, begin, gap_begin))] += length;
      }
    }
  }

  JobPart busy_with(const Rank& rank, int64_t at) const {
    JobPart found = JobPart::other;
    bool unrecorded = false;
    for (const Piece& p : rank.pieces) {
      if (p.begin > at || at >= p.end) continue;
      if (is_recorded(rank, p, begin_of(rank))) {
        found = std::min(found, p.part);
      } else {
        unrecorded = true;
      }
    }
    return found == JobPart::other && unrecorded ? JobPart::unknown : found;
  }

  bool is_recorded(const Rank& rank, const Piece& p, int64_t begin) const {
    return p.issued >= begin ||
           (job_.late_work && p.end > begin &&
            p.issued >= rank.boundaries[static_cast<size_t>(job_.late_work_from)]);
  }

  static JobPart idle_with(const Rank& rank, int64_t at, int64_t gap_begin) {
    const Piece* next = nullptr;
    for (const Piece& p : rank.pieces) {
      if (p.begin > at && (!next || p.begin < next->begin)) next = &p;
    }
    if (next && next->issued + kLatency < gap_begin) return JobPart::other;
    JobPart opener = JobPart::launch;
    int64_t quiet_begin = gap_begin, quiet_end = INT64_MAX, profiled = 0;
    for (const Span& s : rank.spans) {
      if (s.part == JobPart::profiler) {
        if (s.begin <= at && at < s.end) return s.part;
        if (s.begin >= quiet_begin && s.end <= quiet_end) profiled += s.end - s.begin;
        continue;
      }
      const bool waits = s.part == JobPart::sync || s.part == JobPart::allocation;
      if (waits && s.begin <= gap_begin && gap_begin <= s.end) opener = s.part;
      if (s.begin <= at && at < s.end) {
        if (s.part == JobPart::data || waits) return s.part;
        return opener;
      }
      if (s.end <= at) quiet_begin = s.end, profiled = 0;
      if (s.begin > at) quiet_end = std::min(quiet_end, s.begin);
    }
    if (next && at >= next->issued) return opener;
    return quiet_end - quiet_begin - profiled > 1'000'000 ? JobPart::other : opener;
  }

  static constexpr uint64_t kCompute = 0x5000, kComm = 0x6000, kEvent = 0x77;

  static uint64_t ticks(int64_t ns) { return 2'000'000 + static_cast<uint64_t>(ns) * 2; }

  std::string dump_of(int number) {
    const Rank& rank = ranks_[static_cast<size_t>(number)];
    MemoryNames names;
    const StringId gemm = names.intern("_Z4gemmPf"), nccl = names.intern("ncclDevKernel_AllReduce");
    const StringId norm = names.intern(job_.norm_name), softmax = names.intern("_Z7softmaxPf");
    const StringId bias = names.intern("_Z4biasPf"), gelu = names.intern("_Z4geluPf"),
                   bias_gelu = names.intern("_Z9bias_geluPf");
    const uint32_t shape = names.shape({{512, 1, 1}, {256, 1, 1}, 0, 0, 32, 1, 1, 1, 0, 0});
    BatchEncoder encoder(names);
    encoder.begin(0, 0);
    const auto thread = static_cast<uint32_t>(4242 + number);
    const int64_t begin = number == job_.late_rank
                              ? rank.boundaries[first() + static_cast<size_t>(job_.late_by)]
                              : begin_of(rank);
    for (const Span& s : rank.spans) {
      if (s.begin < begin || !job_.calls) continue;
      if (s.part == JobPart::profiler) {
        add_own_time(encoder, s, thread);
      } else {
        add_span(encoder, names, s, thread);
      }
    }
    add_marks(encoder, names, rank, begin, thread);
    for (const Piece& p : rank.pieces) {
      if (!is_recorded(rank, p, begin)) continue;
      const bool untimed = job_.killed_at >= 0 && p.stream == 0;
      if (untimed && p.issued >= rank.boundaries[static_cast<size_t>(job_.killed_at)]) continue;
      Record r = make_record(p.part == JobPart::transfer ? Kind::gpu_copy : Kind::gpu_kernel,
                             ticks(p.begin), ticks(p.end));
      r.correlation = p.correlation;
      if (p.part == JobPart::transfer) {
        r.gpu_copy.bytes = 1 << 20, r.gpu_copy.stream = 7, r.gpu_copy.direction = 1;
        r.gpu_copy.source_kind = job_.blocking_copy ? 1 : 2, r.gpu_copy.destination_kind = 3;
        r.gpu_copy.peer_source = r.gpu_copy.peer_destination = 0xffff;
      } else {
        const bool layers = job_.layer != Job::Layer::plain && p.kernel >= 0;
        const bool fused = job_.layer == Job::Layer::fused;
        r.gpu_kernel.name = p.part == JobPart::communication ? nccl
                            : job_.one_off  ? names.intern("_Z1" + std::to_string(p.correlation))
                            : p.kernel == 1 ? norm
                            : p.kernel == 2 && job_.lone_bias      ? bias
                            : layers && p.kernel % 8 == 4 && fused ? bias_gelu
                            : layers && p.kernel % 8 == 4          ? bias
                            : layers && p.kernel % 8 == 5          ? gelu
                            : p.kernel % 4 == 3                    ? softmax
                                                                   : gemm;
        r.gpu_kernel.shape = shape;
        r.gpu_kernel.stream = p.stream ? 13 : 7;
      }
      if (!encoder.add(r, 0, "")) throw std::bad_alloc();
    }
    ByteBuffer bytes;
    dump::Header header = make_header(0, number);
    header.set_world_size(static_cast<uint32_t>(job_.ranks));
    header.set_window_begin_ticks(ticks(begin));
    const bool bracket = job_.bracket != Job::Bracket::no;
    if (bracket) header.set_step_source("profiler");
    append(bytes, ChunkKind::header, header);
    append_events(bytes, encoder);
    std::vector<uint64_t> boundaries;
    for (size_t i = first(); i < rank.boundaries.size(); ++i) {
      boundaries.push_back(ticks(rank.boundaries[i]));
    }
    if (bracket) boundaries = {boundaries.front(), boundaries.back()};
    if (job_.marked) append_steps(bytes, boundaries, 5, 0, bracket ? "profiler" : "nvtx:step");
    const int64_t end = std::max(rank.busy_until(), rank.boundaries.back()) + job_.tail;
    const auto last = static_cast<uint32_t>(job_.steps - job_.unrecorded);
    dump::Summary summary = make_summary(ticks(end), 5, bracket ? 5 : 4 + last);
    summary.set_window_begin_ticks(ticks(begin));
    append(bytes, ChunkKind::summary, summary);
    return std::string(view(bytes));
  }

  // "iteration N", or an inference engine's text, around each step; or the optimizer's ranges, of a
  // second one that steps in every third step only.
  void add_marks(BatchEncoder& encoder, MemoryNames& names, const Rank& rank, int64_t begin,
                 uint32_t thread) const {
    const auto add = [&](Kind kind, int64_t from, int64_t to, const std::string& text,
                         uint32_t on = 0) {
      Record r = make_record(kind, ticks(from), ticks(to));
      (kind == Kind::nvtx_range ? r.nvtx.message : r.framework.name) = names.intern(text);
      if (!encoder.add(r, on ? on : thread, "python")) throw std::bad_alloc();
    };
    for (size_t i = 0; i + 1 < rank.boundaries.size(); ++i) {
      if (rank.boundaries[i] < begin) continue;
      const auto [from, to] = rank.optimizers[i];
      if (job_.bracket == Job::Bracket::ranges) {
        add(Kind::nvtx_range, rank.boundaries[i], rank.boundaries[i + 1],
            "iteration " + std::to_string(100 + i));
      } else if (job_.bracket == Job::Bracket::engine) {
        add(Kind::nvtx_range, rank.boundaries[i], rank.boundaries[i + 1],
            "[Executor] _forward_step " + std::to_string(i) + ": 0 ctx reqs, 32 gen reqs");
      } else if (job_.bracket == Job::Bracket::optimizers) {
        add(Kind::annotation, from, to, "Optimizer.step#SGD.step");
      } else if (job_.bracket == Job::Bracket::two_optimizers) {
        add(Kind::annotation, from, to, "Optimizer.step#SGD.step");
        if (i % 3 == 2) add(Kind::annotation, to + 1, to + 2, "Optimizer.step#Adam.step");
      } else if (job_.bracket == Job::Bracket::optimizer_groups) {
        add(Kind::op, from - 2, from - 1, "AddmmBackward0", thread + 100);
        for (int64_t group = 0; group < 3; ++group)
          add(Kind::annotation, from + 2 + 2 * group, from + 3 + 2 * group,
              "Optimizer.step#Adam.step");
      } else if (job_.bracket == Job::Bracket::in_backward) {
        for (int64_t node = 0; node < 3; ++node) {
          add(Kind::op, from + 4 * node, from + 4 * node + 1, "AddmmBackward0", thread + 100);
          add(Kind::annotation, from + 4 * node + 2, from + 4 * node + 3,
              "Optimizer.step#Adam.step", thread + 100);
        }
      }
    }
  }

  // As hooks record it: a stack has the time of the call that comes next, and what it took.
  static void add_own_time(BatchEncoder& encoder, const Span& s, uint32_t thread) {
    Record r = own_time_record(OwnTime::step, thread, ticks(s.begin), ticks(s.end));
    if (s.value) {
      r = make_record(Kind::stack, ticks(s.end), ticks(s.end));
      r.stack.ticks = static_cast<uint32_t>(ticks(s.end) - ticks(s.begin));
    }
    if (!encoder.add(r, thread, "python")) throw std::bad_alloc();
  }

  void add_span(BatchEncoder& encoder, MemoryNames& names, const Span& s, uint32_t thread) {
    const std::string_view api = s.api ? s.api : "";
    Kind kind = Kind::nvtx_range;
    if (api == "cudaMemcpyAsync") kind = Kind::copy;
    if (api.starts_with("cudaLaunch")) kind = Kind::launch;
    if (api == "cudaMalloc") kind = Kind::alloc;
    if (api == "cudaFree") kind = Kind::dealloc;
    if (api == "cudaDeviceSynchronize") kind = Kind::sync;
    if (api == "cudaEventRecord") kind = Kind::event;
    if (api == "cudaStreamWaitEvent") kind = Kind::stream;
    Record r = make_record(kind, ticks(s.begin), ticks(s.end));
    r.correlation = s.correlation;
    if (kind == Kind::nvtx_range) {
      r.nvtx.message =
          names.intern("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__");
    } else {
      r.api = names.api(api);
    }
    if (kind == Kind::launch) {
      r.launch.stream = api == "cudaLaunchKernelExC" && job_.overlap ? kComm : kCompute;
      r.launch.grid_x = r.launch.grid_y = r.launch.block_x = r.launch.block_y = 1;
    } else if (kind == Kind::copy) {
      r.copy.stream = kCompute;
    } else if (kind == Kind::event || kind == Kind::stream) {
      r.sync.stream = s.value;
      r.sync.event = kEvent;
    }
    if (!encoder.add(r, thread, "python")) throw std::bad_alloc();
  }

  const Job job_;
  std::minstd_rand random_;
  double slower_ = 1;
  std::vector<Rank> ranks_;
  int step_ = 0;
};

}  // namespace gpuprof::test
