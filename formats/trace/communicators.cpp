// SPDX-License-Identifier: Apache-2.0
#include "formats/trace/communicators.h"

namespace gpuprof {

uint64_t communicator_identity(const Process& process, uint64_t handle, int64_t time) {
  uint64_t out = 0;
  int64_t last = INT64_MIN;
  for (const dump::Communicator& each : process.summary.communicator()) {
    if (each.handle() != handle) continue;
    const int64_t made = process.clock.monotonic_ns(each.made_ticks()) + process.realtime_offset;
    if (out != 0 && (made > time || made < last)) continue;
    out = each.identity();
    last = made;
  }
  return out;
}

}  // namespace gpuprof
