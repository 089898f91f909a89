// SPDX-License-Identifier: Apache-2.0
#include "collector/steps/kernel_steps.h"

#include <regex.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "collector/base/libraries.h"
#include "collector/record/names.h"

namespace gpuprof {
namespace {

enum Verdict : uint64_t { kNoVerdict = 0, kNo = 1, kYes = 2, kUnknown = 3 };

constexpr size_t kSlots = 16384;
constexpr size_t kProbes = 16;  // a function that finds no place within is looked up each time

regex_t g_pattern;
std::atomic<bool> g_compiled{false};
std::atomic<uint64_t>
    g_verdicts[kSlots];  // function << 2 | Verdict; addresses have 57 bits at most
std::atomic<bool> g_any_unknown{false};

size_t slot_of(uint64_t function) { return (function * 0x9e3779b97f4a7c15ull >> 20) % kSlots; }

Verdict known_verdict(uint64_t function) {
  for (size_t i = 0; i < kProbes; ++i) {
    const uint64_t entry =
        g_verdicts[(slot_of(function) + i) % kSlots].load(std::memory_order_relaxed);
    if (entry == 0) return kNoVerdict;
    if (entry >> 2 == function) return static_cast<Verdict>(entry & 3);
  }
  return kNoVerdict;
}

void keep_verdict(uint64_t function, Verdict verdict) {
  for (size_t i = 0; i < kProbes; ++i) {
    uint64_t empty = 0;
    if (g_verdicts[(slot_of(function) + i) % kSlots].compare_exchange_strong(
            empty, function << 2 | verdict, std::memory_order_relaxed)) {
      return;
    }
  }
}

using Demangler = char* (*)(const char*, char*, size_t*, int*);

// Of the process's own C++ runtime library; null when it has none (a C program, or linked static).
Demangler demangler() {
  static std::atomic<Demangler> found{nullptr};
  Demangler demangle = found.load(std::memory_order_relaxed);
  if (!demangle) {
    demangle = reinterpret_cast<Demangler>(real_symbol(loaded_cxx_runtime(), "__cxa_demangle"));
    found.store(demangle, std::memory_order_relaxed);
  }
  return demangle;
}

Verdict judge(const void* function) {
  const std::string_view name = lookup_function(function);
  if (name.empty()) return kUnknown;
  const Demangler demangle = demangler();
  // The name is text of the program's own, and ends with NUL.
  char* const readable = demangle ? demangle(name.data(), nullptr, nullptr, nullptr) : nullptr;
  const bool matches = ::regexec(&g_pattern, readable ? readable : name.data(), 0, nullptr, 0) == 0;
  std::free(readable);
  return matches ? kYes : kNo;
}

}  // namespace

void compile_kernel_pattern(const char* pattern) {
  // Not freed before: in a child after fork its lock may be held by a thread that is no more.
  std::memset(&g_pattern, 0, sizeof g_pattern);
  g_compiled = ::regcomp(&g_pattern, pattern, REG_EXTENDED | REG_NOSUB) == 0;
  forget_kernel_verdicts();
}

bool kernel_matches(const void* function) {
  const uint64_t key = reinterpret_cast<uint64_t>(function);
  Verdict verdict = known_verdict(key);
  if (verdict == kNoVerdict && key != 0 && g_compiled.load(std::memory_order_acquire)) {
    verdict = judge(function);
    if (verdict == kUnknown) g_any_unknown = true;
    keep_verdict(key, verdict);
  }
  return verdict == kYes;
}

void forget_unknown_kernels() {
  if (g_any_unknown.load(std::memory_order_relaxed)) forget_kernel_verdicts();
}

void forget_kernel_verdicts() {
  if (!g_compiled.load(std::memory_order_relaxed)) return;
  g_any_unknown = false;
  for (auto& verdict : g_verdicts) verdict.store(0, std::memory_order_relaxed);
}

}  // namespace gpuprof
