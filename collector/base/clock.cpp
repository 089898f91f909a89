// SPDX-License-Identifier: Apache-2.0
#include "collector/base/clock.h"

#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "collector/base/os.h"

namespace gpuprof {

bool g_clock_is_counter = true;
bool g_clock_of_kernel = false;

uint64_t kernels_monotonic_ns() {
  timespec now{};
  ::syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

uint64_t thread_cpu_ns(uint32_t tid) {
  constexpr uint32_t kOfOneThread = 6;  // CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED
  timespec used{};
  if (::clock_gettime(static_cast<clockid_t>(~tid << 3 | kOfOneThread), &used) != 0) return 0;
  return static_cast<uint64_t>(used.tv_sec) * 1000000000u + static_cast<uint64_t>(used.tv_nsec);
}

namespace {

// Null: the CPU says that its counter goes at one rate.
const char* why_cpu_distrusts() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool invariant = __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & (1u << 8));
  return invariant ? nullptr : "the CPU's TSC is not invariant";
#elif defined(__aarch64__)
  return nullptr;  // by its architecture
#endif
}

#if defined(__x86_64__)
constexpr ClockSource kCounter = ClockSource::tsc;
constexpr const char* kKernelDistrusts = "the kernel does not use the TSC as its clock";
#elif defined(__aarch64__)
constexpr ClockSource kCounter = ClockSource::cntvct;
constexpr const char* kKernelDistrusts = "the kernel does not use CNTVCT_EL0 as its clock";
#endif

// By one look: what stands, or goes at another rate, is off by more than this soon after its begin.
bool libc_has_another_clock() {
  constexpr uint64_t kNearNs = 1000000;
  const uint64_t before = kernels_monotonic_ns();
  const uint64_t libcs = monotonic_ns();
  const uint64_t after = kernels_monotonic_ns();
  return before != 0 && (libcs + kNearNs < before || libcs > after + kNearNs);
}

// The kernel drops `tsc` (and a paravirtual clock built on it) as soon as it sees cores disagree.
bool kernel_trusts_counter() {
  char name[32] = {};
  if (!read_small_file("/sys/devices/system/clocksource/clocksource0/current_clocksource", name,
                       sizeof name)) {
    return false;
  }
#if defined(__x86_64__)
  return std::strncmp(name, "tsc", 3) == 0 || std::strncmp(name, "kvm-clock", 9) == 0 ||
         std::strncmp(name, "hyperv_clocksource_tsc", 22) == 0;
#elif defined(__aarch64__)
  return std::strncmp(name, "arch_sys_counter", 16) == 0;
#endif
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

double counter_ticks_per_ns() {
#if defined(__x86_64__)
  return 2.5;  // a usual rate: to know this one's takes time
#elif defined(__aarch64__)
  uint64_t frequency;
  __asm__("mrs %0, cntfrq_el0" : "=r"(frequency));
  return static_cast<double>(frequency ? frequency : 1000000000u) / 1e9;
#endif
}

ClockChoice choose_clock() {
  g_clock_of_kernel = false;
  g_clock_of_kernel = libc_has_another_clock();
  const char* note = why_cpu_distrusts();
  if (!note && !kernel_trusts_counter()) note = kKernelDistrusts;
  if (!note) {
    g_clock_is_counter = true;
    const ClockAnchor first = read_anchor();
    while (monotonic_ns() - first.monotonic_ns < 1500000) {
    }
    const ClockAnchor second = read_anchor();
    const double rate = static_cast<double>(second.ticks - first.ticks) /
                        static_cast<double>(second.monotonic_ns - first.monotonic_ns);
    uint32_t shift = 0;
    while (rate / static_cast<double>(1u << (shift + 1)) >= 1.0) ++shift;
    return {kCounter, shift, rate, ""};
  }
  g_clock_is_counter = false;
  return {ClockSource::monotonic, 0, 1.0, note};
}

}  // namespace gpuprof
