// SPDX-License-Identifier: Apache-2.0
// For how long a thread could run but had no processor, by the kernel's count at moments of the
// window (Process::processor_waits).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "formats/trace/trace.h"

namespace gpuprof::analysis {

class ProcessorTime {
 public:
  ProcessorTime() = default;  // nothing is known
  ProcessorTime(const Process& process, uint32_t thread_id);

  bool known() const { return points_.size() > 1; }
  // ns of [begin, end). Between two readings the wait is taken to be spread evenly; they lie close
  // around each stretch of a millisecond without a record.
  int64_t waited(int64_t begin, int64_t end) const;
  // When the stretch between two readings began that `time` lies in; `time` itself, if in none.
  int64_t reading_before(int64_t time) const;

 private:
  double at(int64_t time) const;  // ns waited since the first reading

  std::span<const CounterSeries::Point> points_;
};

}  // namespace gpuprof::analysis
