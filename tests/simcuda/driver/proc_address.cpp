// SPDX-License-Identifier: Apache-2.0
// cuGetProcAddress: the way by which CUDA's runtimes, Triton and others reach the driver. No
// cuda.h: only addresses count here, and its macros rename functions.
#include <cstdint>
#include <cstring>

#define SIM_ENTRY(base, since, per_thread, symbol) extern "C" char entry_##symbol __asm__(#symbol);
#include "tests/simcuda/driver/entries.def"
#undef SIM_ENTRY

namespace {

constexpr int kSuccess = 0, kInvalidValue = 1, kNotFound = 500;
constexpr int kFound = 0, kNoSuchSymbol = 1, kVersionTooLow = 2;
constexpr uint64_t kPerThread = 2;  // CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM

struct Entry {
  const char* name;
  int since;
  bool per_thread;
  void* address;
};
const Entry kEntries[] = {
#define SIM_ENTRY(base, since, per_thread, symbol) {#base, since, per_thread, &entry_##symbol},
#include "tests/simcuda/driver/entries.def"
#undef SIM_ENTRY
};

// The newest signature that a program of this CUDA version knows.
const Entry* find(const char* name, int version, bool per_thread, int* status) {
  const Entry* best = nullptr;
  *status = kNoSuchSymbol;
  for (const Entry& entry : kEntries) {
    if (entry.per_thread != per_thread || std::strcmp(entry.name, name) != 0) continue;
    if (entry.since > version) {
      if (best == nullptr) *status = kVersionTooLow;
    } else if (best == nullptr || entry.since > best->since) {
      best = &entry;
      *status = kFound;
    }
  }
  return best;
}

}  // namespace

extern "C" {

int cuGetProcAddress_v2(const char* symbol, void** out, int version, uint64_t flags, int* status) {
  if (symbol == nullptr || out == nullptr) return kInvalidValue;
  int found = kNoSuchSymbol;
  const Entry* entry = nullptr;
  if (flags & kPerThread) entry = find(symbol, version, true, &found);
  if (entry == nullptr) entry = find(symbol, version, false, &found);
  *out = entry != nullptr ? entry->address : nullptr;
  if (status != nullptr) *status = found;
  // As the driver: with somewhere to say why, a missing function is no error.
  return entry != nullptr || status != nullptr ? kSuccess : kNotFound;
}

int cuGetProcAddress(const char* symbol, void** out, int version, uint64_t flags) {
  return cuGetProcAddress_v2(symbol, out, version, flags, nullptr);
}

}  // extern "C"
