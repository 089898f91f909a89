// SPDX-License-Identifier: Apache-2.0
// The time of every step boundary of the run, in and outside windows. The ring has the last
// 262,144, 8 bytes each, and older ones as compact chunks at its end.
#pragma once

#include <cstdint>

#include "collector/record/session.h"
#include "collector/window/dump_file.h"
#include "formats/core/byte_buffer.h"

namespace gpuprof {

// One boundary more. Under the session's step lock. False: the drain thread has not made room for
// 131,072 steps. It is counted as lost, and has no number: those of all others stay what they are.
bool log_step(uint64_t ticks);
// The newest boundary was later than it was logged. Under the session's step lock.
void move_last_step(uint64_t ticks);

// The number of the first boundary at `ticks` or later, of those that the ring holds; that of the
// next one where there is none. Under the session's step lock.
uint64_t first_boundary_from(uint64_t ticks);
// What was logged were no steps: begins anew. False: the log is too long for that. Under the
// session's step lock; the drain thread writes no dump meanwhile.
bool restart_step_log();

// Drain thread only.
class StepLog {
 public:
  // Moves the older half out of the fixed region when that is more than half full.
  void make_room();
  // Writes everything so far as Steps chunks, with the source of the window's steps.
  void write(DumpFile& file, const Window& window);

 private:
  // Encoded together: what this takes of memory must not grow with the run.
  static constexpr uint64_t kAtOnce = 4096;
  bool encode(ByteBuffer& out, uint64_t first, uint64_t count, const char* source);
  bool move(uint64_t first, uint64_t count);

  uint64_t tail_bytes_ = 0;    // of chunks at the ring's end
  bool tail_is_torn_ = false;  // what follows them cannot be removed
  ByteBuffer moved_;           // or, without a file, here
  ByteBuffer body_;
  PodVector<uint64_t> scratch_;
};

}  // namespace gpuprof
