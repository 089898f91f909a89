// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <atomic>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tests/programs/simtrain/options.h"

namespace gpuprof::simtrain {

struct Result {
  int steps = 0;
  uint64_t checksum = 0;
};

class Trainer {
 public:
  explicit Trainer(const Options& options);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  Result run();

 private:
  void set_up();
  void comm_init();
  void comm_destroy();
  bool has_comm() const { return comm_handle_ != nullptr; }
  void all_reduce(float* data, size_t count, cudaStream_t stream);
  void step(int index);
  // Whether --markers names it.
  bool marks(std::string_view how) const;
  bool profile_edge(int index, bool first) const;
  void load_batch(int index);
  void passes();
  void forward_and_backward();
  void forward_layer(int layer, cudaStream_t stream);
  void backward_layer(int layer, cudaStream_t stream);
  void threaded_passes();
  void reduce_gradients(int layer);
  void optimize();
  void allocate_in_step();
  void read_loss(int index);
  uint64_t kernel_ns(double us);

  const Options options_;
  cudaStream_t compute_ = nullptr;
  cudaStream_t comm_ = nullptr;
  std::vector<cudaStream_t> thread_streams_;
  cudaEvent_t grads_ready_ = nullptr;
  cudaEvent_t comm_done_ = nullptr;
  cudaGraphExec_t graph_ = nullptr;
  size_t batch_bytes_ = 0;
  size_t bucket_floats_ = 0;
  unsigned char* host_batch_ = nullptr;
  unsigned char* batch_ = nullptr;
  float* grads_ = nullptr;
  uint64_t* host_loss_ = nullptr;
  ncclComm_t comm_handle_ = nullptr;
  std::atomic<uint64_t> kernels_{0};
  Result result_;
};

}  // namespace gpuprof::simtrain
