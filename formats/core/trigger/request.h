// SPDX-License-Identifier: Apache-2.0
// Requests of `gpuprof trigger` to running processes: a small file beside their dumps, or beside
// one process's ring, replaced as a whole. The drain thread looks for it a few times a second; no
// signal. What became of a request is in the process's RingHeader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gpuprof {

// In a run's directory: for all of its processes.
inline constexpr const char* kRunControlFile = "gpuprof.control";
// After the ring's name without `.gpuprof.ring`: for that process.
inline constexpr const char* kProcessControlSuffix = ".control";

// How often processes look; where the file is on a network, its metadata is cached and expensive.
inline constexpr uint32_t kControlPollMs = 250;
inline constexpr uint32_t kControlPollNetworkMs = 5000;

enum class ControlCommand : uint8_t {
  window,  // record steps step to step+steps-1
  off,     // record nothing, from now on; of a run also in processes that start later
  on,      // off no more, from boundary `step` on
};

struct ControlRequest {
  uint64_t id;  // CLOCK_REALTIME ns when it was made; a newer one has a greater id
  ControlCommand command;
  uint64_t step;
  uint64_t steps;
};

enum class ControlResult : uint32_t {
  none = 0,
  accepted = 1,
  late = 2,      // `step` had passed
  off = 3,       // recording is switched off
  busy = 4,      // a triggered window is open
  no_steps = 5,  // windows are the program's own (GPUPROF_STEP=profiler)
  whole = 6,     // the whole program is recorded (GPUPROF_SCHEDULE=all)
  replaced = 7,  // accepted, in the place of a window that had not begun
  no_room = 8,   // the disk has no room for the records
};

inline constexpr size_t kControlFileBytes = 256;  // more than any request
// Returns the length; `out` has kControlFileBytes.
size_t format_control(const ControlRequest& request, char* out);
// False: not a request of this version.
bool parse_control(std::string_view text, ControlRequest& request);

}  // namespace gpuprof
