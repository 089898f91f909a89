// SPDX-License-Identifier: Apache-2.0
// From the simulator's clock to the client's: linear between pairs of readings taken together.
#pragma once

#include <cupti.h>

#include <cstdint>
#include <mutex>
#include <vector>

namespace gpuprof::simcuda {

class ClockMap {
 public:
  // nullptr: CLOCK_REALTIME nanoseconds, CUPTI's default.
  void set_source(CUpti_TimestampCallbackFunc source);

  // The client's clock now.
  uint64_t client_now();

  // Takes a pair of readings, so that times up to now convert well.
  void sample();

  // The client's time of `monotonic_ns`.
  uint64_t convert(uint64_t monotonic_ns);

 private:
  struct Pair {
    uint64_t monotonic;
    uint64_t client;
  };
  uint64_t read_source() const;
  Pair tight_pair() const;

  std::mutex mutex_;
  CUpti_TimestampCallbackFunc source_ = nullptr;
  std::vector<Pair> pairs_;
};

}  // namespace gpuprof::simcuda
