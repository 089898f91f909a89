// SPDX-License-Identifier: Apache-2.0
// usage: make_dump FILE EVENTS. A dump as a training job leaves it, made by the encoder that the
// library uses: two threads that launch, one that loads data, three streams, nested NVTX ranges,
// collectives, copies, synchronization, steps; in chunks of 65,536 events, ranges where they end.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "formats/io/file_bytes.h"
#include "tests/unit/support/dump_maker.h"

namespace gpuprof::test {
namespace {

constexpr uint64_t kStart = 2'000'000;  // ticks; two are a nanosecond
constexpr size_t kBatch = 65'536;
constexpr uint32_t kForward = 4242, kBackward = 4250, kLoader = 4260;
constexpr int kKernels = 200, kLayers = 32;

class Job {
 public:
  explicit Job(OutputFile& file) : file_(file), encoder_(names_) {
    encoder_.begin(0, 1);
    for (int i = 0; i < kKernels; ++i) {
      const std::string name =
          "_Z" + std::to_string(20 + i % 100) +
          std::string(static_cast<size_t>(20 + i % 100), static_cast<char>('a' + i % 26)) + "PfS_i";
      kernels_[i] = names_.intern(name);
      const auto side = static_cast<uint32_t>(1 + i % 64);
      shapes_[i] = names_.shape({{side * 4, side, 1}, {128, 1, 1}, 0, 1024, 40, 1, 1, 1, 0, 0});
    }
    step_ = names_.intern("train_step");
    for (int i = 0; i < kLayers; ++i) layers_[i] = names_.intern("layer " + std::to_string(i));
    backward_ = names_.intern("backward");
    loading_ = names_.intern("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
    nccl_ = names_.intern("_Z22ncclDevKernel_AllReducev");
    write(ChunkKind::header, make_header(1));
  }

  uint64_t events() const { return events_; }

  void step() {
    boundaries_.push_back(host_);
    const uint64_t begin = host_;
    range(kLoader, loading_, host_, host_ + ns(2'000'000));
    for (int i = 0; i < 8; ++i) load_batch();
    for (int layer = 0; layer < kLayers; ++layer) {
      const uint64_t layer_begin = host_;
      for (int i = 0; i < 30; ++i) launch(kForward);
      range(kForward, layers_[layer], layer_begin, host_);
    }
    const uint64_t backward_begin = host_;
    for (int layer = 0; layer < kLayers; ++layer) {
      for (int i = 0; i < 55; ++i) launch(kBackward);
      all_reduce();
    }
    range(kBackward, backward_, backward_begin, host_);
    for (int i = 0; i < 150; ++i) launch(kForward);
    synchronize();
    range(kForward, step_, begin, host_);
    advance(3'000);
  }

  void finish() {
    flush();
    boundaries_.push_back(host_);
    ByteBuffer chunk;
    append_steps(chunk, boundaries_, 0, 1);
    file_.write(chunk.data(), chunk.size());
    dump::Summary summary = make_summary(host_, 0, static_cast<uint32_t>(boundaries_.size() - 2));
    summary.set_events(events_);
    write(ChunkKind::summary, summary);
  }

 private:
  static uint64_t ns(double value) { return static_cast<uint64_t>(value * 2); }
  double normal() { return normal_(random_); }
  void advance(double nanoseconds) { host_ += ns(nanoseconds * std::exp(0.3 * normal())); }

  void write(ChunkKind kind, const google::protobuf::MessageLite& message) {
    ByteBuffer chunk;
    append(chunk, kind, message);
    file_.write(chunk.data(), chunk.size());
  }
  void flush() {
    ByteBuffer chunk;
    append_events(chunk, encoder_);
    file_.write(chunk.data(), chunk.size());
    encoder_.begin(0, 1);
  }
  void add(const Record& record, uint32_t thread) {
    if (!encoder_.add(record, thread, "python")) throw std::bad_alloc();
    ++events_;
    if (encoder_.size() >= kBatch) flush();
  }

  void range(uint32_t thread, StringId text, uint64_t begin, uint64_t end) {
    Record r = make_record(Kind::nvtx_range, begin, end);
    r.nvtx.message = text;
    add(r, thread);
  }

  // Work on a stream, as soon as it is launched and the stream is free.
  Record work(Kind kind, uint32_t stream, uint64_t& free, double nanoseconds) {
    const uint64_t begin = std::max(free, host_ + ns(4'000));
    free = begin + ns(nanoseconds * (1 + 0.05 * normal()));
    Record r = make_record(kind, begin, free);
    r.correlation = correlation_;
    if (kind == Kind::gpu_copy) {
      r.gpu_copy.stream = stream, r.gpu_copy.context = 1;
      r.gpu_copy.direction = 1, r.gpu_copy.source_kind = 2, r.gpu_copy.destination_kind = 3;
      r.gpu_copy.peer_source = r.gpu_copy.peer_destination = 0xffff;
    } else {
      r.gpu_kernel.stream = stream, r.gpu_kernel.context = 1;
    }
    return r;
  }

  void host_call(Record record, uint32_t thread, double nanoseconds) {
    record.begin = host_;
    advance(nanoseconds);
    record.end = host_;
    add(record, thread);
  }

  void launch(uint32_t thread) {
    const auto which = static_cast<size_t>(sequence_++ * 7 % kKernels);
    ++correlation_;
    const Record kernel = [&] {
      Record r =
          work(Kind::gpu_kernel, 7, compute_free_, 5'000 + 100.0 * static_cast<double>(which));
      r.gpu_kernel.name = kernels_[which], r.gpu_kernel.shape = shapes_[which];
      return r;
    }();
    Record r = make_record(Kind::launch, 0, 0, names_.api("cudaLaunchKernel"));
    r.correlation = correlation_;
    r.launch.function = kernels_[which], r.flags = kFlagNamed;
    r.launch.grid_x = static_cast<uint32_t>(1 + which % 64) * 4;
    r.launch.grid_y = static_cast<uint16_t>(1 + which % 64), r.launch.grid_z = 1;
    r.launch.block_x = 128, r.launch.block_y = r.launch.block_z = 1;
    host_call(r, thread, 4'000);
    advance(6'000);
    add(kernel, 0);
  }

  void load_batch() {
    ++correlation_;
    Record moved = work(Kind::gpu_copy, 13, copy_free_, 80'000);
    moved.gpu_copy.bytes = 1 << 20;
    Record r = make_record(Kind::copy, 0, 0, names_.api("cudaMemcpyAsync"));
    r.correlation = correlation_;
    r.copy.bytes = 1 << 20, r.copy.direction = 1, r.copy.stream = 0x5000;
    r.copy.destination = 0x7f0000000000 + (correlation_ % 512) * (1 << 20),
    r.copy.source = 0x600000000000;
    host_call(r, kLoader, 5'000);
    add(moved, 0);
  }

  void all_reduce() {
    const uint64_t begin = host_;
    advance(2'000);
    ++correlation_;
    Record kernel = work(Kind::gpu_kernel, 20, nccl_free_, 60'000);
    kernel.gpu_kernel.name = nccl_, kernel.gpu_kernel.shape = shapes_[0];
    Record r = make_record(Kind::launch, 0, 0, names_.api("cudaLaunchKernelExC"));
    r.correlation = correlation_;
    r.launch.function = nccl_, r.flags = kFlagNamed, r.launch.stream = 0x6000;
    r.launch.grid_x = 24, r.launch.grid_y = r.launch.grid_z = 1;
    r.launch.block_x = 512, r.launch.block_y = r.launch.block_z = 1;
    host_call(r, kBackward, 4'000);
    advance(1'000);
    Record c = make_record(Kind::collective, begin, host_, names_.api("ncclAllReduce", 3));
    c.collective.communicator = 0x1234, c.collective.stream = 0x6000;
    c.collective.count = 1 << 20, c.collective.data_type = 7;
    c.collective.peer = -1, c.collective.rank_count = 2, c.collective.rank = 0;
    add(c, kBackward);
    add(kernel, 0);
  }

  void synchronize() {
    ++correlation_;
    Record call = make_record(Kind::sync, host_, std::max(host_ + ns(2'000), compute_free_),
                              names_.api("cudaDeviceSynchronize"));
    call.correlation = correlation_;
    Record gpu = make_record(Kind::gpu_sync, call.begin + 200, call.end - 200);
    gpu.correlation = correlation_;
    gpu.gpu_sync.type = 4, gpu.gpu_sync.stream = 0xffffffff, gpu.gpu_sync.context = 1;
    host_ = call.end;
    add(call, kForward);
    add(gpu, 0);
  }

  OutputFile& file_;
  MemoryNames names_;
  BatchEncoder encoder_;
  std::mt19937 random_{42};
  std::normal_distribution<double> normal_;
  StringId kernels_[kKernels], layers_[kLayers], step_, backward_, loading_, nccl_;
  uint32_t shapes_[kKernels];
  uint64_t host_ = kStart, compute_free_ = 0, copy_free_ = 0, nccl_free_ = 0;
  uint64_t sequence_ = 0, events_ = 0;
  uint32_t correlation_ = 0;
  std::vector<uint64_t> boundaries_;
};

}  // namespace
}  // namespace gpuprof::test

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s FILE EVENTS\n", argv[0]);
    return 2;
  }
  gpuprof::OutputFile file(argv[1]);
  gpuprof::test::Job job(file);
  const auto wanted = static_cast<uint64_t>(std::atoll(argv[2]));
  while (job.events() < wanted) job.step();
  job.finish();
  if (!file.commit()) {
    std::fprintf(stderr, "%s\n", file.error().c_str());
    return 1;
  }
  std::printf("%llu events\n", static_cast<unsigned long long>(job.events()));
  return 0;
}
