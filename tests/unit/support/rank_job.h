// SPDX-License-Identifier: Apache-2.0
// A training job of many ranks in virtual time, written as dumps: each rank issues kernels at its
// own pace, collectives begin when the last rank has come and are left within a jitter, hosts have
// clocks that are off and drift. The times that the hosts' clocks would show are what is written.
// Communicators are those of the job and, if asked for, of groups of ranks that were split off, and
// of all but the last rank. Calls are counted over the whole run.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/support/dump_maker.h"

namespace gpuprof::test {

enum class Slow {
  nothing,
  compute,
  data_loading,
  host,
  copies,
  allocation,
  launches,
  processor,  // its host's thread waits for one
  throttled,  // compute, and NVML says so
};

// Times in ns, of the true clock.
struct RankJob {
  int ranks = 4, steps = 3, ranks_per_host = 8;
  int layers = 8, forward = 4, backward = 6, tail = 4;  // kernels: of a layer, and after all
  int64_t kernel = 10'000, issue = 4'000, pause = 6'000, data = 2'000'000;
  int64_t collective = 60'000, leaving = 0;  // leaving: at most, later than the first
  bool identified = true;                    // the dumps name communicators
  int grouped = 1;                           // calls in each collective's kernel
  int group_kernels = 1;    // of each collective's calls together, of different lengths
  bool in_graph = false;    // collectives of layers have no calls, as in a CUDA graph
  bool by_copies = false;   // copy engines do collectives: flags to each rank, data, flags
  int split = 0;            // a ReduceScatter a step in each group of so many ranks
  bool shrunk = false;      // a Broadcast a step in all ranks but the last
  int64_t message = 0;      // a step: each rank sends to the next one, for so long
  int64_t exchange = 0;     // a step: a kernel in which all send to all, each to itself, too
  int late_windows = 0;     // every second rank's window begins so many steps later
  int64_t copy = 0;         // to the GPU, each step, before all kernels
  int64_t allocation = 0;   // cudaMalloc and cudaFree, each so long, likewise
  int64_t unscheduled = 0;  // its thread waits for a processor, likewise
  double noise = 0.05;      // of a kernel, and of all these
  int64_t offset = 0;       // of a host's clock, at most, either way
  double drift_ppm = 0;     // likewise
  int slow_rank = -1;
  Slow slow = Slow::compute;
  double factor = 1.5;                      // of that rank's part
  int slow_from = 0, slow_every = 1;        // in these steps
  int pausing_rank = -1, pausing_step = 0;  // its host does nothing, once
  int64_t pause_once = 0;
  int first_step = 0;          // number of the first one that is written
  uint32_t window = 0;         // its number
  bool step_log_only = false;  // nothing but steps is recorded
  uint64_t seed = 1;
};

enum class RankCommunicator : uint8_t { job, split, shrunk };

struct HostClock {
  double offset = 0, drift = 0;  // ns; ns per ns
  int64_t at(int64_t time) const {
    return time + static_cast<int64_t>(std::llround(offset + drift * static_cast<double>(time)));
  }
};

// What a rank calls: one collective, several alike in a group, or one end of a message.
struct RankCall {
  const char* name = "ncclAllReduce";
  RankCommunicator communicator = RankCommunicator::job;
  int ranks = 0, rank = 0;   // of the communicator
  int peer = -1;             // of a message
  uint64_t count = 1 << 20;  // of floats
  int calls = 1;
  int64_t ready = 0;    // when all ranks have come
  bool to_all = false;  // `calls` are a message to and from each rank
  bool recorded = true;

  RankCall each(int i) const {
    RankCall out = *this;
    if (to_all) out.name = i % 2 ? "ncclRecv" : "ncclSend", out.peer = i / 2;
    return out;
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
    header.set_window(job.window);
    header.set_window_begin_ticks(ticks(kBegin));
    write(ChunkKind::header, header);
  }

  void begin_step(int step) {
    recorded_ = step >= late();
    if (recorded_) boundaries_.push_back(host_);
    step_begin_ = host_;
    const bool slow = job_.slow_rank == rank_ && step >= job_.slow_from &&
                      (step - job_.slow_from) % job_.slow_every == 0;
    const auto factor = [&](Slow part) { return slow && job_.slow == part ? job_.factor : 1.0; };
    compute_ = factor(Slow::compute) * factor(Slow::throttled);
    host_factor_ = factor(Slow::host);
    launch_factor_ = factor(Slow::launches);
    throttled_ = throttled_ || (slow && job_.slow == Slow::throttled);
    if (job_.pausing_rank == rank_ && job_.pausing_step == step) host_ += job_.pause_once;
    const int64_t begin = host_;
    host_ += noisy(job_.data, factor(Slow::data_loading));
    range(loading_, begin);
    const int64_t unscheduled = noisy(job_.unscheduled, factor(Slow::processor));
    host_ += 5'000;
    if (unscheduled > 0) stalls_.push_back({host_, unscheduled});
    host_ += unscheduled + 5'000;
    for (const bool frees : {false, true}) {
      if (job_.allocation > 0) allocate(frees, noisy(job_.allocation, factor(Slow::allocation)));
    }
    if (job_.copy > 0) copy(noisy(job_.copy, factor(Slow::copies)));
  }
  void kernels(int count) {
    for (int i = 0; i < count; ++i) launch();
  }
  // When it comes to a collective or message.
  int64_t arrive() {
    call_begin_ = host_;
    host_ += job_.issue;
    arrival_ = std::max({comm_free_, compute_free_, host_});
    return arrival_;
  }
  void leave(int64_t end, const RankCall& call) {
    comm_free_ = end;
    compute_free_ = std::max(compute_free_, end);
    ++correlation_;
    const int64_t piece = (host_ - call_begin_) / (call.calls + 2);
    int64_t at = call_begin_;
    if (call.calls > 1) group_call("ncclGroupStart", at, at + piece);
    for (int i = 0; call.recorded && i < call.calls; ++i) {
      const int64_t begin = at + piece * (call.calls > 1 ? i + 1 : 0);
      add(collective_record(call.each(i), begin, call.calls > 1 ? begin + piece : host_), true);
    }
    if (call.calls > 1) at += piece * (call.calls + 1), group_call("ncclGroupEnd", at, host_);
    if (job_.by_copies) return copies_of_call(call, at + piece / 4, end);
    int64_t from = arrival_;
    for (int i = 0; i < job_.group_kernels; ++i) {
      if (i > 0) ++correlation_;
      Record r = make_record(Kind::launch, ticks(at + piece / 4 + i), ticks(host_ - piece / 4),
                             names_.api("cudaLaunchKernelExC"));
      r.correlation = correlation_;
      r.launch.function = nccl_, r.flags = kFlagNamed, r.launch.stream = 0x6000;
      r.launch.grid_x = 24, r.launch.grid_y = r.launch.grid_z = 1;
      r.launch.block_x = 512, r.launch.block_y = r.launch.block_z = 1;
      add(r, true);
      const int left = job_.group_kernels - i - 1;
      const int64_t to = end - left * job_.collective / (job_.group_kernels + 1);
      Record k = make_record(Kind::gpu_kernel, ticks(from), ticks(to));
      k.correlation = correlation_;
      k.gpu_kernel.stream = 20, k.gpu_kernel.context = 1;
      k.gpu_kernel.name = nccl_, k.gpu_kernel.shape = shapes_[0];
      add(k, false);
      from = to;
    }
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
    const auto first = static_cast<uint32_t>(job_.first_step + late());
    ByteBuffer chunk;
    append_steps(chunk, boundaries, first, 1);
    sink_(view(chunk));
    dump::Summary summary =
        make_summary(ticks(host_), first, first + static_cast<uint32_t>(boundaries_.size()) - 2);
    summary.set_window_begin_ticks(ticks(kBegin));
    summary.set_events(events_);
    if (job_.identified) add_communicators(summary);
    write(ChunkKind::summary, summary);
  }
  uint64_t events() const { return events_; }

  // What no record of the dump has, as the analysis sees it: of a thread, of a GPU.
  ProcessorWaits processor_waits() const {
    ProcessorWaits out{static_cast<uint32_t>(4242 + rank_), {}};
    uint64_t waited = 1000;
    const auto at = [&](int64_t time) { return kEpochNs + clock_.at(time); };
    out.points.push_back({at(kBegin), waited});
    for (const auto& [begin, length] : stalls_) {
      out.points.push_back({at(begin), waited});
      waited += static_cast<uint64_t>(length);
      out.points.push_back({at(begin + length), waited});
    }
    out.points.push_back({at(host_), waited});
    return out;
  }
  std::vector<CounterSeries> counters() const {
    const auto at = [&](int64_t time) { return kEpochNs + clock_.at(time); };
    CounterSeries clock{0, Counter::sm_clock, {}}, reasons{0, Counter::throttle_reasons, {}};
    for (int64_t time = kBegin; time < host_; time += 10'000'000) {
      clock.points.push_back({at(time), throttled_ ? 1300u : 1980u});
      reasons.points.push_back({at(time), throttled_ ? 0x40u : 0u});  // temperature
    }
    return {clock, reasons, {0, Counter::max_sm_clock, {{at(kBegin), 1980}}}};
  }
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
  int late() const { return rank_ % 2 ? job_.late_windows : 0; }
  // Two ranks may have the same handle for different communicators, as processes do.
  static uint64_t handle_of(RankCommunicator communicator) {
    return 0x1234'0000 + static_cast<uint64_t>(communicator) * 64;
  }
  void add_communicators(dump::Summary& summary) const {
    const auto add = [&](RankCommunicator which, uint64_t identity) {
      dump::Communicator* const out = summary.add_communicator();
      out->set_handle(handle_of(which));
      out->set_identity(identity);
      out->set_made_ticks(ticks(0));
    };
    add(RankCommunicator::job, 0xabc1);
    if (job_.split > 0) {
      add(RankCommunicator::split, 0xabd000 + static_cast<uint64_t>(rank_ / job_.split));
    }
    if (job_.shrunk && rank_ + 1 < job_.ranks) add(RankCommunicator::shrunk, 0xabe1);
  }
  void group_call(const char* name, int64_t begin, int64_t end) {
    add(make_record(Kind::call, ticks(begin), ticks(end), names_.api(name, 3)), true);
  }
  Record collective_record(const RankCall& call, int64_t begin, int64_t end) {
    Record c = make_record(Kind::collective, ticks(begin), ticks(end), names_.api(call.name, 3));
    c.collective.communicator = handle_of(call.communicator);
    c.collective.stream = 0x6000, c.collective.count = call.count, c.collective.data_type = 7;
    c.collective.peer = call.peer;
    c.collective.sequence = sequences_[{
        call.communicator, call.peer < 0 ? "" : call.name + std::to_string(call.peer)}]++;
    c.collective.rank_count = static_cast<uint16_t>(call.ranks);
    c.collective.rank = static_cast<uint16_t>(call.rank);
    return c;
  }
  void add(const Record& record, bool host) {
    if (!recorded_ || job_.step_log_only) return;
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
  void allocate(bool frees, int64_t length) {
    ++correlation_;
    Record r = make_record(frees ? Kind::dealloc : Kind::alloc, ticks(host_), ticks(host_ + length),
                           names_.api(frees ? "cudaFree" : "cudaMalloc"));
    r.correlation = correlation_;
    r.memory.address = 0x7f00'0000'0000, r.memory.bytes = 1 << 20;
    host_ += length + 1'000;
    add(r, true);
  }
  // What NCCL's copy engines do: a flag to each other rank, the data once all flags are there,
  // flags again. The waits for flags are no records.
  void copies_of_call(const RankCall& call, int64_t host, int64_t end) {
    constexpr int64_t kFlag = 1'500;
    const int others = call.ranks - 1;
    const auto add_copies = [&](const char* api, int copies, uint64_t bytes, int64_t from,
                                int64_t to) {
      Record r = make_record(Kind::copy, ticks(host), ticks(host + 10), names_.api(api));
      r.correlation = ++correlation_, r.copy.stream = 0x6000;
      host += 10;
      add(r, true);
      for (int i = 0; i < copies; ++i) {
        const int64_t length = (to - from) / copies;
        add(gpu_copy(20, bytes, from + i * length, from + (i + 1) * length), false);
      }
    };
    const auto add_flags = [&](int64_t from) {
      for (int i = 0; i < others; ++i, from += kFlag) {
        add_copies("cudaMemcpyAsync", 1, 4, from, from + kFlag);
      }
      return from;
    };
    const int64_t ready = std::max(add_flags(arrival_), call.ready + others * kFlag);
    const int64_t done = end - others * kFlag;
    add_copies("cudaMemcpyBatchAsync", others, call.count * 4, ready, done);
    add_flags(done);
  }
  Record gpu_copy(uint32_t stream, uint64_t bytes, int64_t begin, int64_t end) {
    Record k = make_record(Kind::gpu_copy, ticks(begin), ticks(end));
    k.correlation = correlation_;
    k.gpu_copy.bytes = bytes, k.gpu_copy.stream = stream, k.gpu_copy.context = 1;
    k.gpu_copy.direction = 8, k.gpu_copy.source_kind = k.gpu_copy.destination_kind = 3;
    k.gpu_copy.peer_source = k.gpu_copy.peer_destination = 0xffff;
    return k;
  }
  void copy(int64_t length) {
    ++correlation_;
    const int64_t begin = std::max(compute_free_, host_ + 4'000);
    compute_free_ = begin + length;
    Record k = gpu_copy(7, 1 << 20, begin, compute_free_);
    k.gpu_copy.direction = 1, k.gpu_copy.source_kind = 2;
    Record r = make_record(Kind::copy, ticks(host_), ticks(host_ + job_.issue),
                           names_.api("cudaMemcpyAsync"));
    r.correlation = correlation_, r.copy.stream = 0x5000;
    host_ += job_.issue + 1'000;
    add(r, true);
    add(k, false);
  }
  void launch() {
    const int64_t issue = launch_factor_ == 1 ? job_.issue : noisy(job_.issue, launch_factor_);
    const auto which = static_cast<size_t>(number_++ * 7 % kKernels);
    ++correlation_;
    const int64_t begin = std::max(compute_free_, host_ + issue);
    compute_free_ = begin + noisy(job_.kernel, compute_);
    Record k = make_record(Kind::gpu_kernel, ticks(begin), ticks(compute_free_));
    k.correlation = correlation_;
    k.gpu_kernel.stream = 7, k.gpu_kernel.context = 1;
    k.gpu_kernel.name = kernels_[which], k.gpu_kernel.shape = shapes_[which];
    Record r = make_record(Kind::launch, ticks(host_), ticks(host_ + issue),
                           names_.api("cudaLaunchKernel"));
    r.correlation = correlation_;
    r.launch.function = kernels_[which], r.flags = kFlagNamed, r.launch.stream = 0x5000;
    r.launch.grid_x = r.launch.grid_y = r.launch.grid_z = 1;
    r.launch.block_x = 128, r.launch.block_y = r.launch.block_z = 1;
    host_ += issue + noisy(job_.pause, host_factor_);
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
  double compute_ = 1, host_factor_ = 1, launch_factor_ = 1;
  bool throttled_ = false;
  std::vector<std::pair<int64_t, int64_t>> stalls_;  // begin and length
  uint64_t events_ = 0, number_ = 0;
  uint32_t correlation_ = 0;
  bool recorded_ = true;
  std::map<std::pair<RankCommunicator, std::string>, uint32_t> sequences_;  // of messages: by way
  std::vector<int64_t> boundaries_;
};

// Runs the job; `sink(rank, bytes)` gets each rank's dump in pieces. Returns the hosts' clocks.
inline std::vector<HostClock> run_rank_job(
    const RankJob& job, const std::function<void(int, std::string_view)>& sink,
    const std::function<void(int, const RankWriter&)>& done = {}) {
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
  // Of ranks first to end, who are all of the communicator.
  const auto collective = [&](int first, int end, RankCall call) {
    const auto members =
        std::span(ranks).subspan(static_cast<size_t>(first), static_cast<size_t>(end - first));
    int64_t last = 0;
    for (const auto& rank : members) last = std::max(last, rank->arrive());
    call.ranks = end - first, call.ready = last;
    for (const auto& rank : members) {
      const int64_t length = call.to_all ? job.exchange : call.calls * job.collective;
      rank->leave(last + length + rank->jitter(job.leaving), call);
      ++call.rank;
    }
  };
  const auto message = [&](int from, int to) {
    RankWriter &sender = *ranks[static_cast<size_t>(from)],
               &receiver = *ranks[static_cast<size_t>(to)];
    const int64_t end = std::max(sender.arrive(), receiver.arrive()) + job.message;
    sender.leave(end, {"ncclSend", RankCommunicator::job, job.ranks, from, to});
    receiver.leave(end, {"ncclRecv", RankCommunicator::job, job.ranks, to, from});
  };
  for (int step = 0; step < job.steps; ++step) {
    for (const auto& rank : ranks) {
      rank->begin_step(step);
      rank->kernels(job.layers * job.forward);
    }
    for (int rank = 0; job.message > 0 && rank + 1 < job.ranks; ++rank) message(rank, rank + 1);
    if (job.exchange > 0) {
      RankCall call;
      call.to_all = true, call.calls = 2 * job.ranks;
      collective(0, job.ranks, call);
    }
    for (int layer = 0; layer < job.layers; ++layer) {
      for (const auto& rank : ranks) rank->kernels(job.backward);
      RankCall call;
      if (job.by_copies) call.name = "ncclAllGather";
      call.calls = job.grouped;
      call.recorded = !job.in_graph;
      collective(0, job.ranks, call);
    }
    for (int first = 0; job.split > 0 && first < job.ranks; first += job.split) {
      const int end = std::min(first + job.split, job.ranks);
      collective(first, end, {"ncclReduceScatter", RankCommunicator::split});
    }
    if (job.shrunk) collective(0, job.ranks - 1, {"ncclBroadcast", RankCommunicator::shrunk});
    for (const auto& rank : ranks) {
      rank->kernels(job.tail);
      rank->end_step();
    }
  }
  for (size_t i = 0; i < ranks.size(); ++i) {
    ranks[i]->finish();
    if (done) done(static_cast<int>(i), *ranks[i]);
  }
  return clocks;
}

// All ranks' dumps, one after the other.
inline std::string rank_job_dumps(const RankJob& job) {
  std::vector<std::string> dumps(static_cast<size_t>(job.ranks));
  run_rank_job(
      job, [&](int rank, std::string_view bytes) { dumps[static_cast<size_t>(rank)] += bytes; });
  std::string all;
  for (const std::string& each : dumps) all += each;
  return all;
}

inline Trace load_rank_job(const RankJob& job, std::vector<HostClock>* clocks = nullptr) {
  std::vector<std::string> dumps(static_cast<size_t>(job.ranks));
  std::vector<ProcessorWaits> waits;
  std::vector<std::vector<CounterSeries>> counters;
  const auto made = run_rank_job(
      job, [&](int rank, std::string_view bytes) { dumps[static_cast<size_t>(rank)] += bytes; },
      [&](int, const RankWriter& writer) {
        waits.push_back(writer.processor_waits());
        counters.push_back(writer.counters());
      });
  if (clocks) *clocks = made;
  std::string all;
  for (const std::string& each : dumps) all += each;
  Trace out = load(all);
  for (size_t i = 0; i < out.processes.size() && job.unscheduled > 0; ++i) {
    const auto rank = static_cast<size_t>(out.processes[i].header.rank());
    out.processes[i].processor_waits.push_back(waits[rank]);
    out.processes[i].counters = counters[rank];
  }
  return out;
}

}  // namespace gpuprof::test
