// SPDX-License-Identifier: Apache-2.0
#include "collector/base/clock.h"

#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "collector/base/os.h"

namespace gpuprof {

bool g_clock_is_tsc = true;

uint64_t thread_cpu_ns(uint32_t tid) {
  constexpr uint32_t kOfOneThread = 6;  // CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED
  timespec used{};
  if (::clock_gettime(static_cast<clockid_t>(~tid << 3 | kOfOneThread), &used) != 0) return 0;
  return static_cast<uint64_t>(used.tv_sec) * 1000000000u + static_cast<uint64_t>(used.tv_nsec);
}

namespace {

#if defined(__x86_64__)
bool cpu_has_invariant_tsc() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & (1u << 8));
}
#endif

// The kernel drops `tsc` (and a paravirtual clock built on it) as soon as it sees cores disagree.
bool kernel_trusts_tsc() {
  char name[32] = {};
  if (!read_small_file("/sys/devices/system/clocksource/clocksource0/current_clocksource", name,
                       sizeof name)) {
    return false;
  }
  return std::strncmp(name, "tsc", 3) == 0 || std::strncmp(name, "kvm-clock", 9) == 0 ||
         std::strncmp(name, "hyperv_clocksource_tsc", 22) == 0;
}

uint64_t realtime_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

ClockAnchor read_anchor() {
  ClockAnchor best{};
  uint64_t best_width = ~0ull;
  for (int i = 0; i < 16; ++i) {
    const uint64_t before = now_ticks();
    const uint64_t mono = monotonic_ns();
    const uint64_t real = realtime_ns();
    const uint64_t mono_again = monotonic_ns();
    const uint64_t after = now_ticks();
    if (after - before >= best_width) continue;
    best_width = after - before;
    // The middle of the bracket for ticks and MONOTONIC alike; REALTIME was read in that middle.
    best.ticks = before + (after - before) / 2;
    best.monotonic_ns = mono + (mono_again - mono) / 2;
    best.realtime_ns = real;
  }
  return best;
}

ClockChoice choose_clock() {
#if defined(__x86_64__)
  const char* note = !cpu_has_invariant_tsc() ? "the CPU's TSC is not invariant"
                     : !kernel_trusts_tsc()   ? "the kernel does not use the TSC as its clock"
                                              : "";
  if (*note == '\0') {
    g_clock_is_tsc = true;
    const ClockAnchor first = read_anchor();
    while (monotonic_ns() - first.monotonic_ns < 1500000) {
    }
    const ClockAnchor second = read_anchor();
    const double rate = static_cast<double>(second.ticks - first.ticks) /
                        static_cast<double>(second.monotonic_ns - first.monotonic_ns);
    uint32_t shift = 0;
    while (rate / static_cast<double>(1u << (shift + 1)) >= 1.0) ++shift;
    return {ClockSource::tsc, shift, rate, ""};
  }
#else
  const char* note = "no TSC on this architecture";
#endif
  g_clock_is_tsc = false;
  return {ClockSource::monotonic, 0, 1.0, note};
}

}  // namespace gpuprof
