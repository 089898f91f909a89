// SPDX-License-Identifier: Apache-2.0
// cuGetProcAddress: the way by which CUDA's runtimes, Triton and others reach the driver. No
// cuda.h: only addresses count here, and its macros rename functions.
#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>

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

// SIMCUDA_PROC_ADDRESS=other: for each entry a jump to it, in memory of no library.
void* other_address(const Entry& entry) {
  constexpr size_t kJumpBytes = 16;
  static unsigned char* const jumps = [] {
    constexpr size_t kBytes = std::size(kEntries) * kJumpBytes;
    void* const memory =
        ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    auto* const code = static_cast<unsigned char*>(memory);
    for (size_t i = 0; i < std::size(kEntries); ++i) {
#if defined(__aarch64__)
      // ldr x16, address; br x16; address:
      constexpr size_t kAddress = 8;
      unsigned char jump[kJumpBytes] = {0x50, 0, 0, 0x58, 0, 0x02, 0x1f, 0xd6};
#else
      // movabs $address, %r11; jmp *%r11
      constexpr size_t kAddress = 2;
      unsigned char jump[kJumpBytes] = {0x49, 0xbb, 0, 0, 0, 0, 0, 0, 0, 0, 0x41, 0xff, 0xe3};
#endif
      std::memcpy(jump + kAddress, &kEntries[i].address, sizeof(void*));
      std::memcpy(code + i * kJumpBytes, jump, kJumpBytes);
    }
    __builtin___clear_cache(reinterpret_cast<char*>(code), reinterpret_cast<char*>(code) + kBytes);
    if (::mprotect(memory, kBytes, PROT_READ | PROT_EXEC) != 0) std::abort();
    return code;
  }();
  return jumps + static_cast<size_t>(&entry - kEntries) * kJumpBytes;
}

void* address_of(const Entry* entry) {
  static const bool other = [] {
    const char* const text = std::getenv("SIMCUDA_PROC_ADDRESS");
    return text != nullptr && std::strcmp(text, "other") == 0;
  }();
  if (entry == nullptr) return nullptr;
  return other ? other_address(*entry) : entry->address;
}

}  // namespace

extern "C" {

int cuGetProcAddress_v2(const char* symbol, void** out, int version, uint64_t flags, int* status) {
  if (symbol == nullptr || out == nullptr) return kInvalidValue;
  int found = kNoSuchSymbol;
  const Entry* entry = nullptr;
  if (flags & kPerThread) entry = find(symbol, version, true, &found);
  if (entry == nullptr) entry = find(symbol, version, false, &found);
  *out = address_of(entry);
  if (status != nullptr) *status = found;
  // As the driver: with somewhere to say why, a missing function is no error.
  return entry != nullptr || status != nullptr ? kSuccess : kNotFound;
}

int cuGetProcAddress(const char* symbol, void** out, int version, uint64_t flags) {
  return cuGetProcAddress_v2(symbol, out, version, flags, nullptr);
}

}  // extern "C"
