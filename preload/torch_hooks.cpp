// SPDX-License-Identifier: Apache-2.0
// Functions of PyTorch's libc10 by which its allocators tell a profiler of each block. They are
// called through the symbol table, so that ours come first, or are put into its slots; types are as
// in the mangled names, a c10::Device being two bytes in a register.
#include "preload/torch_hooks.h"

#include <atomic>
#include <cstdint>
#include <cstring>

#include "collector/base/libraries.h"
#include "collector/base/os.h"
#include "collector/torch/tensors.h"
#include "preload/export.h"
#include "preload/named_hook.h"

#define GPUPROF_C extern "C" GPUPROF_EXPORT

namespace {

// libc10's own; null where there is no libc10.so.
void* look_up(const char* name) {
  const gpuprof::ErrnoGuard keep_errno;
  return gpuprof::real_symbol(gpuprof::loaded_library("libc10.so"), name);
}

// It is there, since it or a library on top of it calls us.
void* real_function(std::atomic<void*>& known, const char* name) {
  void* function = known.load(std::memory_order_acquire);
  if (function) return function;
  function = look_up(name);
  known.store(function, std::memory_order_release);
  return function;
}

using Report = void (*)(void*, int64_t, uint64_t, uint64_t, uint16_t);

void report(std::atomic<void*>& known, const char* name, void* address, int64_t bytes,
            uint64_t allocated, uint64_t kept, uint16_t device) {
  // The CPU's are recorded below, also where no profiler of the program's is on.
  if ((device & 0xff) != 0 && gpuprof::tensors_are_wanted()) {
    const uint64_t size = static_cast<uint64_t>(bytes);
    gpuprof::record_tensor(
        {address, bytes < 0 ? 0 - size : size, allocated, kept, device, bytes < 0});
  }
  void* const real = real_function(known, name);
  if (real) reinterpret_cast<Report>(real)(address, bytes, allocated, kept, device);
}

void report_failure(std::atomic<void*>& known, const char* name, int64_t bytes, uint64_t allocated,
                    uint64_t kept, uint16_t device) {
  gpuprof::note_out_of_memory(static_cast<uint64_t>(bytes), device);
  void* const real = real_function(known, name);
  if (real) {
    reinterpret_cast<void (*)(int64_t, uint64_t, uint64_t, uint16_t)>(real)(bytes, allocated, kept,
                                                                            device);
  }
}

}  // namespace

GPUPROF_C void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void* address, int64_t bytes,
                                                                     uint64_t allocated,
                                                                     uint64_t kept,
                                                                     uint16_t device) {
  static std::atomic<void*> known;
  report(known, __func__, address, bytes, allocated, kept, device);
}

// Of PyTorch before 2.1, which took the totals as signed.
GPUPROF_C void _ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE(void* address, int64_t bytes,
                                                                     uint64_t allocated,
                                                                     uint64_t kept,
                                                                     uint16_t device) {
  static std::atomic<void*> known;
  report(known, __func__, address, bytes, allocated, kept, device);
}

// Of an allocator that is about to give up. Of PyTorch before 2.1 with the totals as signed.
GPUPROF_C void _ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE(int64_t bytes,
                                                                   uint64_t allocated,
                                                                   uint64_t kept, uint16_t device) {
  static std::atomic<void*> known;
  report_failure(known, __func__, bytes, allocated, kept, device);
}

GPUPROF_C void _ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE(int64_t bytes,
                                                                   uint64_t allocated,
                                                                   uint64_t kept, uint16_t device) {
  static std::atomic<void*> known;
  report_failure(known, __func__, bytes, allocated, kept, device);
}

// The CPU's allocator tells its own account of each block; that tells a profiler only if one is on.
// `self` is the account.
GPUPROF_C void _ZN3c1025ProfiledCPUMemoryReporter3NewEPvm(void* self, void* address,
                                                          uint64_t bytes) {
  static std::atomic<void*> known;
  if (address && gpuprof::tensors_are_wanted()) {
    gpuprof::record_tensor({address, bytes, gpuprof::kTotalUnknown, gpuprof::kTotalUnknown,
                            gpuprof::kCpuDevice, false});
  }
  void* const real = real_function(known, __func__);
  if (real) reinterpret_cast<void (*)(void*, void*, uint64_t)>(real)(self, address, bytes);
}

// Its size is not said.
GPUPROF_C void _ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv(void* self, void* address) {
  static std::atomic<void*> known;
  if (address && gpuprof::tensors_are_wanted()) {
    gpuprof::record_tensor(
        {address, 0, gpuprof::kTotalUnknown, gpuprof::kTotalUnknown, gpuprof::kCpuDevice, true});
  }
  void* const real = real_function(known, __func__);
  if (real) reinterpret_cast<void (*)(void*, void*)>(real)(self, address);
}

#undef GPUPROF_C

namespace gpuprof {

void* torch_hook(const char* name, void*& real) {
  if (std::strncmp(name, "_ZN3c10", 7) != 0) return nullptr;
  const NamedHook hooks[] = {
      GPUPROF_NAMED_HOOK(_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE),
      GPUPROF_NAMED_HOOK(_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE),
      GPUPROF_NAMED_HOOK(_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE),
      GPUPROF_NAMED_HOOK(_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE),
      GPUPROF_NAMED_HOOK(_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm),
      GPUPROF_NAMED_HOOK(_ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv)};
  void* const hook = find_named_hook(hooks, name);
  if (hook) real = look_up(name);
  return hook;
}

}  // namespace gpuprof
