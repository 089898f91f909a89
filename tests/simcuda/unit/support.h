// SPDX-License-Identifier: Apache-2.0
// What the simulator's own tests share: the truth log read back, kernels of a given length, a CUPTI
// client, and running a part of the test in a process of its own.
#pragma once

#include <cuda_runtime_api.h>
#include <cupti.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace gpuprof::simcuda::testing {

using Json = nlohmann::json;
using Environment = std::vector<std::pair<std::string, std::string>>;

// Lines of this process's truth log so far, or of all files of `directory`.
std::vector<Json> truth();
std::vector<Json> truth_in(const std::string& directory);
// Those of one kind ("call", "gpu", ...) whose `key` is `value`.
std::vector<Json> select(const std::vector<Json>& lines, const std::string& kind,
                         const std::string& key, const Json& value);

uint64_t begin_of(const Json& line);
uint64_t end_of(const Json& line);

// Launches a kernel of that name and length; asserts success.
void launch(const char* name, uint64_t ns, cudaStream_t stream);
// The one kernel of that name in the truth log.
Json kernel(const char* name);

class Streams {
 public:
  explicit Streams(int count, unsigned flags = cudaStreamNonBlocking);
  ~Streams();
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;
  cudaStream_t operator[](size_t i) const { return streams_[i]; }

 private:
  std::vector<cudaStream_t> streams_;
};

// Runs the disabled test `name` in a new process; returns its exit code, or 128 + signal.
int run_child(const std::string& name, const Environment& extra);
// Starts it and returns its pid; wait_child returns as run_child does.
int start_child(const std::string& name, const Environment& extra);
int wait_child(int pid);

std::string make_directory();

// Collects all activity records as bytes.
class CuptiClient {
 public:
  static CuptiClient& instance();
  void start(const std::vector<CUpti_ActivityKind>& kinds);
  void stop();
  // The threads that asked for a buffer since the start. To be read after the stop.
  const std::vector<pid_t>& requesters() const { return requesters_; }
  // Flushes and returns the records of a kind received so far.
  template <typename Record>
  std::vector<Record> records(CUpti_ActivityKind kind, uint32_t flag = 0) {
    EXPECT_EQ(cuptiActivityFlushAll(flag), CUPTI_SUCCESS);
    std::vector<Record> out;
    for (const std::string& bytes : received_[kind]) {
      Record record;
      EXPECT_EQ(bytes.size(), sizeof record);
      __builtin_memcpy(&record, bytes.data(), sizeof record);
      out.push_back(record);
    }
    return out;
  }

 private:
  static void CUPTIAPI request(uint8_t** buffer, size_t* size, size_t* max_records);
  static void CUPTIAPI complete(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid);

  std::vector<CUpti_ActivityKind> kinds_;
  std::vector<pid_t> requesters_;
  std::map<CUpti_ActivityKind, std::vector<std::string>> received_;
};

}  // namespace gpuprof::simcuda::testing
