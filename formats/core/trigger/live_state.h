// SPDX-License-Identifier: Apache-2.0
// What an armed process tells `gpuprof trigger` on other machines, which cannot see its ring, and
// one whose ring is in memory tells any: a small file beside its dumps, replaced as a whole each
// second and after each request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gpuprof {

// After the ring's name without `.gpuprof.ring`; that begins with the host's name and "_r".
inline constexpr const char* kLiveStateSuffix = ".gpuprof.state";
inline constexpr uint32_t kLiveStateMs = 1000;

struct LiveState {
  uint64_t beat;  // greater each time; one that stays is of a process that has ended, or hangs
  uint64_t process_id;
  int64_t rank;             // -1: unknown
  uint64_t boundaries;      // of steps, so far
  uint64_t step_ns;         // mean of the last few; 0: not known
  uint64_t poll_ms;         // how often requests are looked for
  uint64_t control_id;      // of the newest request that was read
  uint64_t control_result;  // ControlResult
  uint64_t recording_off;
};

inline constexpr size_t kLiveStateBytes = 256;  // more than any
// Returns the length; `out` has kLiveStateBytes.
size_t format_live_state(const LiveState& state, char* out);
// False: not a state of this version.
bool parse_live_state(std::string_view text, LiveState& state);

}  // namespace gpuprof
