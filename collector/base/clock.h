// SPDX-License-Identifier: Apache-2.0
// The clock of every record: ticks of the processor's counter (TSC; CNTVCT_EL0 on aarch64) if CPU
// and kernel trust it, else CLOCK_MONOTONIC nanoseconds. Any thread may call now_ticks(), also
// before our constructor.
#pragma once

#include <cstdint>
#include <ctime>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "formats/core/ring_file.h"

namespace gpuprof {

// Whether the kernel is asked past libc's function: another library has one that answers otherwise
// (libfaketime). It may stand still, and a wait of ours would never end.
extern bool g_clock_of_kernel;  // fixed by choose_clock()

uint64_t kernels_monotonic_ns();

inline uint64_t monotonic_ns() {
  if (__builtin_expect(g_clock_of_kernel, 0)) return kernels_monotonic_ns();
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

// CPU time of the calling thread.
inline uint64_t thread_cpu_ns() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<uint64_t>(used.tv_sec) * 1000000000u + static_cast<uint64_t>(used.tv_nsec);
}

// Of any thread of the process; of one that runs it is that of now. 0: it has ended.
uint64_t thread_cpu_ns(uint32_t tid);

// Of all threads of the process.
inline uint64_t process_cpu_ns() {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<uint64_t>(used.tv_sec) * 1000000000u + static_cast<uint64_t>(used.tv_nsec);
}

extern bool g_clock_is_counter;  // fixed by choose_clock(), before the first record

#if defined(__x86_64__)
inline uint64_t read_counter() { return __rdtsc(); }
#elif defined(__aarch64__)
inline uint64_t read_counter() {
  uint64_t ticks;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
}
#endif

inline uint64_t now_ticks() {
  if (__builtin_expect(g_clock_is_counter, 1)) return read_counter();
  return monotonic_ns();
}

// As of when other threads see all that this one has stored.
inline uint64_t ticks_after_stores() {
#if defined(__x86_64__)
  _mm_mfence();
  _mm_lfence();  // without which rdtsc would not wait for the fence before
#elif defined(__aarch64__)
  __asm__ volatile("dsb ish\n\tisb" ::: "memory");  // likewise
#endif
  return now_ticks();
}

struct ClockChoice {
  ClockSource source;
  uint32_t shift;       // dump unit = ticks >> shift; chosen so that a unit is about 1 ns
  double ticks_per_ns;  // estimate, good to 1e-3; for limits and messages only
  const char* note;     // why the counter was not used; "" if it was
};

// Decides once, at session start; about 2 ms (it measures the counter's rate).
ClockChoice choose_clock();

// About how fast the counter goes, also where it is not used.
double counter_ticks_per_ns();

// Reads the three clocks tightly together: the best of several tries.
ClockAnchor read_anchor();

}  // namespace gpuprof
