// SPDX-License-Identifier: Apache-2.0
#include "formats/trace/communicators.h"

namespace gpuprof {

uint64_t communicator_identity(const Process& process, uint64_t handle, int64_t time) {
  uint64_t out = 0, first = 0;
  int64_t last = INT64_MIN, earliest = INT64_MAX;
  for (const dump::Communicator& each : process.summary.communicator()) {
    if (each.handle() != handle) continue;
    const int64_t made = process.clock.monotonic_ns(each.made_ticks()) + process.realtime_offset;
    if (made <= time && made >= last) {
      out = each.identity();
      last = made;
    }
    if (made < earliest) {
      first = each.identity();
      earliest = made;
    }
  }
  // A call begins before the communicator that it makes known is noted.
  return last == INT64_MIN ? first : out;
}

}  // namespace gpuprof
