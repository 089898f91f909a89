// SPDX-License-Identifier: Apache-2.0
// What gpuprof itself takes of the program's threads: records of the kind `overhead`, as CUPTI has
// them of its own work. `overhead.type` is CUPTI's (CUpti_ActivityOverheadKind: below 2^24) or one
// of these; `overhead.object` is the thread, `begin` and `end` are when.
#pragma once

#include <cstdint>

#include "formats/core/record.h"

namespace gpuprof {

inline constexpr uint32_t kOwnTimes = 0x47500000;  // no type of CUPTI's is so large
inline constexpr uint32_t kThreadObject = 2;       // CUPTI_ACTIVITY_OBJECT_THREAD

enum class OwnTime : uint32_t {
  // Call stacks of calls, before the call. One record stands for all since the one before it: it is
  // as long as they took together, and ends with the last of them.
  stack = kOwnTimes + 1,
  buffer,    // a fresh buffer for records
  callback,  // CUPTI's buffers: lent, or read, in a call of the program
  step,      // a step mark: windows, schedule, and the wait for other threads' marks
  python,    // hooks in Python that come and go with a window
  attach,    // CUPTI is attached within the window. `object` is 0: of all threads, but by others
};
inline constexpr uint32_t kOwnTimeKinds = 6;

constexpr bool is_own_time(uint32_t overhead_type) {
  return overhead_type > kOwnTimes && overhead_type <= kOwnTimes + kOwnTimeKinds;
}
constexpr bool is_own_time(const Record& record) {
  return record.kind == Kind::overhead && is_own_time(record.overhead.type);
}

// `thread`: the Linux tid; 0: of no one thread.
inline Record own_time_record(OwnTime what, uint32_t thread, uint64_t begin, uint64_t end) {
  Record record{};
  record.begin = begin;
  record.end = end;
  record.api = kNoApi;
  record.kind = Kind::overhead;
  record.overhead.type = static_cast<uint32_t>(what);
  record.overhead.object_kind = thread ? kThreadObject : 0;
  record.overhead.object = thread;
  return record;
}

}  // namespace gpuprof
