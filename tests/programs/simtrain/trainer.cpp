// SPDX-License-Identifier: Apache-2.0
#include "tests/programs/simtrain/trainer.h"

#include <fmt/format.h>
#include <nvtx3/nvToolsExt.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "tests/programs/simtrain/kernels.h"
#include "tests/programs/simtrain/truth.h"
#include "tests/simcuda/core/clock.h"

// In cuda_profiler_api.h, which the wheels of the runtime do not bring.
extern "C" {
cudaError_t cudaProfilerStart();
cudaError_t cudaProfilerStop();
}

namespace gpuprof::simtrain {
namespace {

constexpr double kSmallKernelUs = 2;
constexpr dim3 kBlock(256, 1, 1);

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  throw std::runtime_error(fmt::format("{}: {}", what, cudaGetErrorString(error)));
}

class NvtxRange {
 public:
  NvtxRange(bool on, const std::string& name) : on_(on) {
    if (on_) nvtxRangePushA(name.c_str());
  }
  ~NvtxRange() {
    if (on_) nvtxRangePop();
  }
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;

 private:
  const bool on_;
};

}  // namespace

Trainer::Trainer(const Options& options) : options_(options) {}

Trainer::~Trainer() {
  if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
  for (cudaStream_t stream : thread_streams_) cudaStreamDestroy(stream);
  if (options_.pageable) {
    std::free(host_batch_);
  } else {
    cudaFreeHost(host_batch_);
  }
  cudaFreeHost(host_loss_);
  cudaFree(batch_);
  cudaFree(grads_);
  cudaEventDestroy(grads_ready_);
  cudaEventDestroy(comm_done_);
  cudaStreamDestroy(compute_);
  cudaStreamDestroy(comm_);
}

void Trainer::set_up() {
  int devices = 0;
  check(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
  const char* local = std::getenv("LOCAL_RANK");
  const int number = local == nullptr ? options_.rank : std::atoi(local);
  check(cudaSetDevice(number % devices), "cudaSetDevice");
  check(cudaStreamCreateWithFlags(&compute_, cudaStreamNonBlocking), "cudaStreamCreate");
  check(cudaStreamCreateWithFlags(&comm_, cudaStreamNonBlocking), "cudaStreamCreate");
  for (int i = 0; options_.threads > 1 && i < options_.threads; ++i) {
    check(cudaStreamCreateWithFlags(&thread_streams_.emplace_back(), cudaStreamNonBlocking),
          "cudaStreamCreate");
  }
  check(cudaEventCreateWithFlags(&grads_ready_, cudaEventDisableTiming), "cudaEventCreate");
  check(cudaEventCreateWithFlags(&comm_done_, cudaEventDisableTiming), "cudaEventCreate");
  batch_bytes_ = std::max<size_t>(static_cast<size_t>(options_.h2d_mb * 1e6), sizeof(uint64_t));
  bucket_floats_ = static_cast<size_t>(options_.comm_mb * 1e6) / sizeof(float) /
                   static_cast<size_t>(options_.layers);
  check(cudaMalloc(reinterpret_cast<void**>(&batch_), batch_bytes_), "cudaMalloc");
  check(cudaMalloc(reinterpret_cast<void**>(&grads_),
                   std::max<size_t>(bucket_floats_ * static_cast<size_t>(options_.layers), 1024) *
                       sizeof(float)),
        "cudaMalloc");
  check(cudaMallocHost(reinterpret_cast<void**>(&host_loss_), sizeof(uint64_t)), "cudaMallocHost");
  if (options_.pageable) {
    host_batch_ = static_cast<unsigned char*>(std::malloc(batch_bytes_));
  } else {
    check(cudaMallocHost(reinterpret_cast<void**>(&host_batch_), batch_bytes_), "cudaMallocHost");
  }
}

Result Trainer::run() {
  set_up();
  comm_init();
  for (int i = 0; i < options_.steps; ++i) {
    if (profile_edge(i, true)) check(cudaProfilerStart(), "cudaProfilerStart");
    step(i);
    if (profile_edge(i, false)) check(cudaProfilerStop(), "cudaProfilerStop");
  }
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  comm_destroy();
  return result_;
}

bool Trainer::marks(std::string_view how) const {
  return options_.markers.find(how) != std::string::npos;
}

// Whether a range of --profile-steps begins (ends) with this step.
bool Trainer::profile_edge(int index, bool first) const {
  if (!marks("profiler")) return false;
  std::istringstream ranges(options_.profile_steps);
  for (std::string range; std::getline(ranges, range, ',');) {
    const size_t dash = range.find('-');
    const std::string edge = first ? range.substr(0, dash) : range.substr(dash + 1);
    if (std::atoi(edge.c_str()) == index) return true;
  }
  return false;
}

void Trainer::step(int index) {
  const NvtxRange range(marks("nvtx"), fmt::format("step {}", index));
  const uint64_t begin = simcuda::now_ns();
  load_batch(index);
  passes();
  optimize();
  allocate_in_step();
  read_loss(index);
  ++result_.steps;
  truth_note(fmt::format("{{\"t\":\"step\",\"n\":{},\"begin\":{},\"end\":{}}}", index, begin,
                         simcuda::now_ns()));
}

void Trainer::load_batch(int index) {
  if (index == options_.asleep_in && options_.asleep_s) ::sleep(options_.asleep_s);
  while (index == options_.asleep_in && !options_.asleep_s) ::pause();
  uint64_t begin, end;
  {
    const NvtxRange range(marks("nvtx") || marks("sync"), "enumerate(DataLoader)#sim.__next__");
    begin = simcuda::now_ns();
    if (options_.data_ms > 0) {
      std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(options_.data_ms));
    }
    const uint64_t value = simcuda::mix64(options_.seed * 1000003 + static_cast<uint64_t>(index));
    std::memcpy(host_batch_, &value, sizeof value);
    end = simcuda::now_ns();
  }
  truth_note(fmt::format("{{\"t\":\"data\",\"n\":{},\"begin\":{},\"end\":{}}}", index, begin, end));
  check(cudaMemcpyAsync(batch_, host_batch_, batch_bytes_, cudaMemcpyHostToDevice, compute_),
        "cudaMemcpyAsync");
}

// Jittered by 5 %, the same for the same seed.
uint64_t Trainer::kernel_ns(double us) {
  const uint64_t draw = simcuda::mix64(options_.seed << 32 ^ ++kernels_);
  const double jitter = 0.975 + static_cast<double>(draw % 1000) * 0.05 / 1000;
  return static_cast<uint64_t>(us * 1000 * options_.kernel_factor * jitter) + 1;
}

void Trainer::passes() {
  if (options_.threads > 1) return threaded_passes();
  if (!options_.graphs) return forward_and_backward();
  if (graph_ == nullptr) {
    cudaGraph_t graph = nullptr;
    check(cudaStreamBeginCapture(compute_, cudaStreamCaptureModeThreadLocal), "begin capture");
    forward_and_backward();
    check(cudaStreamEndCapture(compute_, &graph), "end capture");
    check(cudaGraphInstantiate(&graph_, graph, 0), "cudaGraphInstantiate");
    check(cudaGraphDestroy(graph), "cudaGraphDestroy");
  }
  check(cudaGraphLaunch(graph_, compute_), "cudaGraphLaunch");
}

void Trainer::forward_and_backward() {
  for (int i = 0; i < options_.layers; ++i) forward_layer(i, compute_);
  check(launch(Kernel::kSoftmaxLoss, dim3(64), kBlock, compute_, kernel_ns(options_.kernel_us / 8)),
        "softmax_loss");
  for (int i = options_.layers - 1; i >= 0; --i) {
    backward_layer(i, compute_);
    reduce_gradients(i);
  }
  if (options_.overlap && has_comm()) {
    check(cudaEventRecord(comm_done_, comm_), "cudaEventRecord");
    check(cudaStreamWaitEvent(compute_, comm_done_, 0), "cudaStreamWaitEvent");
  }
}

// Each thread launches its share of the layers on a stream of its own.
void Trainer::threaded_passes() {
  check(cudaEventRecord(grads_ready_, compute_), "cudaEventRecord");
  const int device = [] {
    int d = 0;
    cudaGetDevice(&d);
    return d;
  }();
  std::vector<std::thread> threads;
  for (int t = 0; t < options_.threads; ++t) {
    threads.emplace_back([this, t, device] {
      cudaSetDevice(device);
      cudaStream_t stream = thread_streams_[static_cast<size_t>(t)];
      cudaStreamWaitEvent(stream, grads_ready_, 0);
      for (int i = t; i < options_.layers; i += options_.threads) forward_layer(i, stream);
      for (int i = t; i < options_.layers; i += options_.threads) backward_layer(i, stream);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (cudaStream_t stream : thread_streams_) {
    check(cudaEventRecord(comm_done_, stream), "cudaEventRecord");
    check(cudaStreamWaitEvent(compute_, comm_done_, 0), "cudaStreamWaitEvent");
  }
  for (int i = options_.layers - 1; i >= 0; --i) reduce_gradients(i);
}

void Trainer::forward_layer(int layer, cudaStream_t stream) {
  check(launch(Kernel::kGemmForward, dim3(256, 2), kBlock, stream, kernel_ns(options_.kernel_us)),
        "gemm_fwd");
  check(launch(Kernel::kLayerNorm, dim3(128), kBlock, stream, kernel_ns(options_.kernel_us / 8)),
        "layer_norm");
  const int first = options_.small_kernels * layer / options_.layers;
  const int last = options_.small_kernels * (layer + 1) / options_.layers;
  for (int i = first; i < last; ++i) {
    check(launch(Kernel::kElementwise, dim3(16), kBlock, stream, kernel_ns(kSmallKernelUs)),
          "elementwise");
  }
}

void Trainer::backward_layer(int, cudaStream_t stream) {
  check(launch(Kernel::kGemmBackwardData, dim3(256, 2), kBlock, stream,
               kernel_ns(options_.kernel_us)),
        "gemm_bwd_data");
  check(launch(Kernel::kGemmBackwardWeight, dim3(256, 2), kBlock, stream,
               kernel_ns(options_.kernel_us)),
        "gemm_bwd_weight");
}

void Trainer::reduce_gradients(int layer) {
  if (!has_comm()) return;
  cudaStream_t stream = compute_;
  if (options_.overlap) {
    stream = comm_;
    check(cudaEventRecord(grads_ready_, compute_), "cudaEventRecord");
    check(cudaStreamWaitEvent(comm_, grads_ready_, 0), "cudaStreamWaitEvent");
  }
  all_reduce(grads_ + static_cast<size_t>(layer) * bucket_floats_, bucket_floats_, stream);
}

void Trainer::optimize() {
  if (options_.overlap && has_comm() && options_.threads > 1) {
    check(cudaEventRecord(comm_done_, comm_), "cudaEventRecord");
    check(cudaStreamWaitEvent(compute_, comm_done_, 0), "cudaStreamWaitEvent");
  }
  check(launch(Kernel::kOptimizer, dim3(512), kBlock, compute_, kernel_ns(options_.kernel_us / 2)),
        "multi_tensor_adam");
  check(cudaMemsetAsync(grads_, 0, 4096, compute_), "cudaMemsetAsync");
}

void Trainer::allocate_in_step() {
  for (int i = 0; i < options_.malloc_per_step; ++i) {
    void* temporary = nullptr;
    check(cudaMalloc(&temporary, static_cast<size_t>(i % 7 + 1) * 65536), "cudaMalloc");
    check(cudaFree(temporary), "cudaFree");
  }
}

void Trainer::read_loss(int index) {
  if ((index + 1) % options_.sync_every == 0) {
    check(cudaMemcpyAsync(host_loss_, batch_, sizeof(uint64_t), cudaMemcpyDeviceToHost, compute_),
          "cudaMemcpyAsync");
    check(cudaStreamSynchronize(compute_), "cudaStreamSynchronize");
    result_.checksum = simcuda::mix64(result_.checksum ^ *host_loss_);
  }
  if (marks("sync")) check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

}  // namespace gpuprof::simtrain
