// SPDX-License-Identifier: Apache-2.0
// A training job of many ranks in virtual time, written as dumps: each rank issues kernels at its
// own pace, collectives begin when the last rank has come and are left within a jitter, hosts have
// clocks that are off and drift. The times that the hosts' clocks would show are what is written.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/unit/support/dump_maker.h"

namespace gpuprof::test {

enum class Slow { nothing, compute, data_loading, host };

// Times in ns, of the true clock.
struct RankJob {
  int ranks = 4, steps = 3, ranks_per_host = 8;
  int layers = 8, forward = 4, backward = 6, tail = 4;  // kernels: of a layer, and after all
  int64_t kernel = 10'000, issue = 4'000, pause = 6'000, data = 2'000'000;
  int64_t collective = 60'000, leaving = 0;  // leaving: at most, later than the first
  double noise = 0.05;                       // of a kernel
  int64_t offset = 0;                        // of a host's clock, at most, either way
  double drift_ppm = 0;                      // likewise
  int slow_rank = -1;
  Slow slow = Slow::compute;
  double factor = 1.5;                      // of that rank's part
  int slow_from = 0, slow_every = 1;        // in these steps
  int pausing_rank = -1, pausing_step = 0;  // its host does nothing, once
  int64_t pause_once = 0;
  int first_step = 0;  // number of the first one that is written
  uint64_t seed = 1;
};

struct HostClock {
  double offset = 0, drift = 0;  // ns; ns per ns
  int64_t at(int64_t time) const {
    return time + static_cast<int64_t>(std::llround(offset + drift * static_cast<double>(time)));
  }
};

// Of one rank: its records, as they come.
class RankWriter {
 public:
  using Sink = std::function<void(std::string_view)>;

  RankWriter(const RankJob& job, int rank, HostClock clock, Sink sink)
      : job_(job), rank_(rank), clock_(clock), sink_(std::move(sink)), encoder_(names_) {
    encoder_.begin(0, 1);
    random_.seed(job.seed * 1'000'003 + static_cast<uint64_t>(rank));
    for (int i = 0; i < kKernels; ++i) {
      kernels_.push_back(names_.intern("_Z8kernel" + std::to_string(100 + i) + "Pf"));
      const auto side = static_cast<uint32_t>(1 + i % 64);
      shapes_.push_back(names_.shape({{side, side, 1}, {128, 1, 1}, 0, 0, 40, 1, 1, 1, 0, 0}));
    }
    step_ = names_.intern("train_step");
    loading_ = names_.intern("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
    nccl_ = names_.intern("_Z22ncclDevKernel_AllReducev");
    dump::Header header = make_header(1, rank);
    header.set_host("node" + std::to_string(rank / job.ranks_per_host));
    header.set_local_rank(rank % job.ranks_per_host);
    header.set_world_size(job.ranks);
    header.set_window_begin_ticks(ticks(kBegin));
    write(ChunkKind::header, header);
  }

  void begin_step(int step) {
    boundaries_.push_back(host_);
    step_begin_ = host_;
    const bool slow = job_.slow_rank == rank_ && step >= job_.slow_from &&
                      (step - job_.slow_from) % job_.slow_every == 0;
    const auto factor = [&](Slow part) { return slow && job_.slow == part ? job_.factor : 1.0; };
    compute_ = factor(Slow::compute);
    host_factor_ = factor(Slow::host);
    if (job_.pausing_rank == rank_ && job_.pausing_step == step) host_ += job_.pause_once;
    const int64_t begin = host_;
    host_ += noisy(job_.data, factor(Slow::data_loading));
    range(loading_, begin);
  }
  void kernels(int count) {
    for (int i = 0; i < count; ++i) launch();
  }
  // When it comes to the collective.
  int64_t arrive() {
    call_begin_ = host_;
    host_ += job_.issue;
    arrival_ = std::max({comm_free_, compute_free_, host_});
    return arrival_;
  }
  void leave(int64_t end) {
    comm_free_ = end;
    compute_free_ = std::max(compute_free_, end);
    ++correlation_;
    Record r = make_record(Kind::launch, ticks(call_begin_ + 500), ticks(host_ - 500),
                           names_.api("cudaLaunchKernelExC"));
    r.correlation = correlation_;
    r.launch.function = nccl_, r.flags = kFlagNamed, r.launch.stream = 0x6000;
    r.launch.grid_x = 24, r.launch.grid_y = r.launch.grid_z = 1;
    r.launch.block_x = 512, r.launch.block_y = r.launch.block_z = 1;
    add(r, true);
    Record c = make_record(Kind::collective, ticks(call_begin_), ticks(host_),
                           names_.api("ncclAllReduce", 3));
    c.collective.communicator = 0x1234 + static_cast<uint64_t>(rank_) * 64;
    c.collective.stream = 0x6000, c.collective.count = 1 << 20, c.collective.data_type = 7;
    c.collective.peer = -1, c.collective.sequence = sequence_++;
    c.collective.rank_count = static_cast<uint16_t>(job_.ranks);
    c.collective.rank = static_cast<uint16_t>(rank_);
    add(c, true);
    Record k = make_record(Kind::gpu_kernel, ticks(arrival_), ticks(end));
    k.correlation = correlation_;
    k.gpu_kernel.stream = 20, k.gpu_kernel.context = 1;
    k.gpu_kernel.name = nccl_, k.gpu_kernel.shape = shapes_[0];
    add(k, false);
  }
  void end_step() {
    ++correlation_;
    const int64_t end = std::max({host_ + 2'000, compute_free_, comm_free_});
    Record call = make_record(Kind::sync, ticks(host_), ticks(end + 2'000),
                              names_.api("cudaDeviceSynchronize"));
    call.correlation = correlation_;
    add(call, true);
    host_ = end + 2'000;
    range(step_, step_begin_);
    host_ += 3'000;
  }
  void finish() {
    flush();
    boundaries_.push_back(host_);
    std::vector<uint64_t> boundaries;
    for (const int64_t time : boundaries_) boundaries.push_back(ticks(time));
    const auto first = static_cast<uint32_t>(job_.first_step);
    ByteBuffer chunk;
    append_steps(chunk, boundaries, first, 1);
    sink_(view(chunk));
    dump::Summary summary =
        make_summary(ticks(host_), first, first + static_cast<uint32_t>(boundaries_.size()) - 2);
    summary.set_window_begin_ticks(ticks(kBegin));
    summary.set_events(events_);
    write(ChunkKind::summary, summary);
  }
  uint64_t events() const { return events_; }
  int64_t jitter(int64_t most) {
    return most > 0 ? static_cast<int64_t>(random_() % static_cast<uint64_t>(most + 1)) : 0;
  }

 private:
  static constexpr int kKernels = 50;
  static constexpr size_t kBatch = 8192;
  static constexpr int64_t kBegin = 100'000'000;  // far from clocks that are early

  uint64_t ticks(int64_t time) const {
    return 2'000'000 + static_cast<uint64_t>(clock_.at(time)) * 2;
  }
  int64_t noisy(int64_t length, double factor) {
    const double noise = 1 + job_.noise * normal_(random_);
    return static_cast<int64_t>(static_cast<double>(length) * factor * std::max(0.1, noise));
  }
  void write(ChunkKind kind, const google::protobuf::MessageLite& message) {
    ByteBuffer chunk;
    append(chunk, kind, message);
    sink_(view(chunk));
  }
  void flush() {
    ByteBuffer chunk;
    append_events(chunk, encoder_);
    sink_(view(chunk));
    encoder_.begin(0, 1);
  }
  void add(const Record& record, bool host) {
    const auto thread = host ? static_cast<uint32_t>(4242 + rank_) : 0;
    if (!encoder_.add(record, thread, "python")) throw std::bad_alloc();
    ++events_;
    if (encoder_.size() >= kBatch) flush();
  }
  void range(StringId text, int64_t begin) {
    Record r = make_record(Kind::nvtx_range, ticks(begin), ticks(host_));
    r.nvtx.message = text;
    add(r, true);
  }
  void launch() {
    const auto which = static_cast<size_t>(number_++ * 7 % kKernels);
    ++correlation_;
    const int64_t begin = std::max(compute_free_, host_ + 4'000);
    compute_free_ = begin + noisy(job_.kernel, compute_);
    Record k = make_record(Kind::gpu_kernel, ticks(begin), ticks(compute_free_));
    k.correlation = correlation_;
    k.gpu_kernel.stream = 7, k.gpu_kernel.context = 1;
    k.gpu_kernel.name = kernels_[which], k.gpu_kernel.shape = shapes_[which];
    Record r = make_record(Kind::launch, ticks(host_), ticks(host_ + job_.issue),
                           names_.api("cudaLaunchKernel"));
    r.correlation = correlation_;
    r.launch.function = kernels_[which], r.flags = kFlagNamed, r.launch.stream = 0x5000;
    r.launch.grid_x = r.launch.grid_y = r.launch.grid_z = 1;
    r.launch.block_x = 128, r.launch.block_y = r.launch.block_z = 1;
    host_ += job_.issue + noisy(job_.pause, host_factor_);
    add(r, true);
    add(k, false);
  }

  const RankJob job_;
  const int rank_;
  const HostClock clock_;
  Sink sink_;
  MemoryNames names_;
  BatchEncoder encoder_;
  std::minstd_rand random_;
  std::normal_distribution<double> normal_;
  std::vector<StringId> kernels_;
  std::vector<uint32_t> shapes_;
  StringId step_, loading_, nccl_;
  int64_t host_ = kBegin, compute_free_ = 0, comm_free_ = 0;
  int64_t step_begin_ = 0, call_begin_ = 0, arrival_ = 0;
  double compute_ = 1, host_factor_ = 1;
  uint64_t events_ = 0, number_ = 0;
  uint32_t correlation_ = 0, sequence_ = 0;
  std::vector<int64_t> boundaries_;
};

// Runs the job; `sink(rank, bytes)` gets each rank's dump in pieces. Returns the hosts' clocks.
inline std::vector<HostClock> run_rank_job(const RankJob& job,
                                           const std::function<void(int, std::string_view)>& sink) {
  std::mt19937_64 random(job.seed);
  std::uniform_real_distribution<double> either(-1, 1);
  std::vector<HostClock> clocks;
  for (int rank = 0; rank < job.ranks; rank += job.ranks_per_host) {
    const double offset = either(random) * static_cast<double>(job.offset);
    clocks.push_back({offset, either(random) * job.drift_ppm / 1e6});
  }
  std::vector<std::unique_ptr<RankWriter>> ranks;
  for (int rank = 0; rank < job.ranks; ++rank) {
    ranks.push_back(std::make_unique<RankWriter>(
        job, rank, clocks[static_cast<size_t>(rank / job.ranks_per_host)],
        [&sink, rank](std::string_view bytes) { sink(rank, bytes); }));
  }
  const auto collective = [&] {
    int64_t last = 0;
    for (const auto& rank : ranks) last = std::max(last, rank->arrive());
    for (const auto& rank : ranks) rank->leave(last + job.collective + rank->jitter(job.leaving));
  };
  for (int step = 0; step < job.steps; ++step) {
    for (const auto& rank : ranks) {
      rank->begin_step(step);
      rank->kernels(job.layers * job.forward);
    }
    for (int layer = 0; layer < job.layers; ++layer) {
      for (const auto& rank : ranks) rank->kernels(job.backward);
      collective();
    }
    for (const auto& rank : ranks) {
      rank->kernels(job.tail);
      rank->end_step();
    }
  }
  for (const auto& rank : ranks) rank->finish();
  return clocks;
}

inline Trace load_rank_job(const RankJob& job, std::vector<HostClock>* clocks = nullptr) {
  std::vector<std::string> dumps(static_cast<size_t>(job.ranks));
  const auto made = run_rank_job(
      job, [&](int rank, std::string_view bytes) { dumps[static_cast<size_t>(rank)] += bytes; });
  if (clocks) *clocks = made;
  std::string all;
  for (const std::string& each : dumps) all += each;
  return load(all);
}

}  // namespace gpuprof::test
