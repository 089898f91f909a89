// SPDX-License-Identifier: Apache-2.0
// How a window's time was used, for GPUPROF_METRICS: added up from its records as they are written.
// Times in ticks. Drain thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "formats/core/byte_buffer.h"
#include "formats/core/record.h"

namespace gpuprof {

// The time that at least one of many stretches covers. They may come in any order: of half a
// million that lie apart the oldest half is summed up, and what comes for that time later adds
// nothing.
class CoveredTime {
 public:
  void clear();
  void add(uint64_t begin, uint64_t end);
  // Of what lies between `begin` and `end`, which all calls since clear() must give alike.
  uint64_t total(uint64_t begin, uint64_t end);

 private:
  struct Stretch {
    uint64_t begin, end;
  };
  void merge();

  PodVector<Stretch> stretches_;
  uint64_t settled_ = 0;        // ticks of what is summed up
  uint64_t settled_until_ = 0;  // what lies before counts no more
};

class WindowUse {
 public:
  static constexpr size_t kMostGpus = 16;

  // Of a window: work on GPU `gpu`, and that which does not communicate.
  struct Gpu {
    bool worked;
    bool graphs;  // work of unknown kind: launches of CUDA graphs that have one time as a whole
    CoveredTime all, computing;
  };

  void begin();
  // `name`: of a kernel, or of a range that the program named.
  void add(const Record& record, std::string_view name);

  Gpu& gpu(size_t index) { return gpus_[index]; }
  bool loads_data() const { return loads_data_; }
  // In which a thread waited for a data loader; only if loads_data().
  uint64_t data_ticks(uint64_t begin, uint64_t end) { return data_.total(begin, end); }

 private:
  Gpu gpus_[kMostGpus]{};
  bool loads_data_ = false;
  CoveredTime data_;
};

}  // namespace gpuprof
