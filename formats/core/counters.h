// SPDX-License-Identifier: Apache-2.0
// What is sampled of a GPU beside its work. Values are part of the dump format: never reuse one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpuprof {

enum class Counter : uint8_t {
  none = 0,
  sm_clock = 1,          // MHz
  memory_clock = 2,      // MHz
  power = 3,             // mW
  temperature = 4,       // degrees Celsius
  throttle_reasons = 5,  // bits of nvmlClocksThrottleReasons
  gpu_busy = 6,          // percent of NVML's last sample period in which a kernel ran
  memory_busy = 7,       // percent of it in which device memory was read or written
  memory_used = 8,       // bytes, of all processes
  ecc_corrected = 9,     // errors since the driver was loaded
  ecc_uncorrected = 10,
  max_sm_clock = 11,  // MHz, the highest that the device has; once a window
  // Of a thread, whose number stands for the device's: ns since it was born in which it could run
  // but had no processor
  processor_wait = 12,
  // Likewise, read together with each host sample of the thread: ns in which it ran, and in which
  // it could run but had no processor. The two series of a thread have the same times.
  thread_running = 13,
  thread_waiting = 14,
};
inline constexpr size_t kCounters = 15;

struct CounterText {
  const char* name;
  const char* unit;
};
inline constexpr CounterText kCounterTexts[kCounters] = {
    {"", ""},
    {"SM clock", "MHz"},
    {"memory clock", "MHz"},
    {"power", "mW"},
    {"temperature", "C"},
    {"throttle reasons", ""},
    {"GPU busy", "%"},
    {"GPU memory busy", "%"},
    {"GPU memory used", "bytes"},
    {"ECC errors corrected", ""},
    {"ECC errors uncorrected", ""},
    {"SM clock at most", "MHz"},
    {"without a processor", "ns"},
    {"running", "ns"},
    {"waiting for a processor", "ns"},
};

}  // namespace gpuprof
