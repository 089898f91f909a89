// SPDX-License-Identifier: Apache-2.0
// The simulator's one clock: CLOCK_MONOTONIC in nanoseconds, on host and device alike.
#pragma once

#include <time.h>

#include <cstdint>

namespace gpuprof::simcuda {

inline uint64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}

// Blocks the calling thread until `deadline_ns`: sleeps until shortly before, then spins, so that
// a host synchronisation returns within microseconds of the computed device time.
inline void sleep_until_ns(uint64_t deadline_ns) {
  constexpr uint64_t kSpinNs = 60'000;
  for (uint64_t now = now_ns(); now < deadline_ns; now = now_ns()) {
    if (deadline_ns - now <= kSpinNs) continue;
    const uint64_t wake = deadline_ns - kSpinNs;
    timespec t{};
    t.tv_sec = static_cast<time_t>(wake / 1'000'000'000u);
    t.tv_nsec = static_cast<long>(wake % 1'000'000'000u);
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr);
  }
}

// A well mixed 64-bit value of `x` (splitmix64): the simulator's only source of "randomness".
inline uint64_t mix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace gpuprof::simcuda
