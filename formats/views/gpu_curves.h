// SPDX-License-Identifier: Apache-2.0
// How busy GPUs were over a window, in equal intervals: what counter tracks show.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/trace/trace.h"

namespace gpuprof {

struct GpuCurve {
  struct Point {
    int64_t time;  // ns; the value holds until the next point
    double value;
  };
  uint32_t device;
  std::string name;           // "GPU busy", "copy bandwidth", "queue of stream 7"
  const char* unit;           // "%", "GB/s", "queued"
  std::vector<Point> points;  // where the value changes
};

// In at most kCurveIntervals intervals, none shorter than 10 us:
// - GPU busy: share of the interval in which at least one stream has work;
// - copy bandwidth: bytes of copies, spread evenly over the time that each took;
// - queue of a stream: launched by a call and not begun yet, at the end of the interval. Work whose
// call
//   is not known does not count.
inline constexpr int64_t kCurveIntervals = 2000;
std::vector<GpuCurve> gpu_curves(const Trace& trace, const Process& process);

}  // namespace gpuprof
