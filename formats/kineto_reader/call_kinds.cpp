// SPDX-License-Identifier: Apache-2.0
#include "formats/kineto_reader/call_kinds.h"

#include <algorithm>
#include <iterator>
#include <optional>

namespace gpuprof::kineto {
namespace {

template <size_t Count>
bool begins_with_one_of(std::string_view name, const std::string_view (&beginnings)[Count]) {
  return std::any_of(std::begin(beginnings), std::end(beginnings),
                     [name](std::string_view each) { return name.starts_with(each); });
}

bool launches(std::string_view name) {
  if (name.starts_with("LaunchHostFunc")) return false;
  return name.starts_with("Launch") || name.starts_with("GraphLaunch") ||
         name.find("LaunchKernel") != std::string_view::npos ||
         name.find("KernelLaunch") != std::string_view::npos ||
         name.find("job_prep_and_submit") != std::string_view::npos ||
         name.find("LaunchCooperative") != std::string_view::npos ||
         name.find("LaunchMultipleKernels") != std::string_view::npos;
}

// Intel's Unified Runtime names a queue's calls after what they enqueue.
std::optional<Kind> kind_of_unified_runtime(std::string_view name) {
  const auto has = [name](std::string_view part) { return name.find(part) != name.npos; };
  if (name.starts_with("urEnqueue")) {
    if (has("Fill")) return Kind::set;
    if (has("Memcpy") || has("MemBufferCopy")) return Kind::copy;
    if (has("MemBufferRead") || has("MemBufferWrite")) return Kind::copy;
  }
  if (name.starts_with("urQueueFinish") || name.starts_with("urEventWait")) return Kind::sync;
  if (name.starts_with("urUSM")) {
    if (name.ends_with("Alloc")) return Kind::alloc;
    if (name.ends_with("Free")) return Kind::dealloc;
  }
  return std::nullopt;
}

// Level Zero (ze_api.h), the driver beneath it: calls on a command list are named after what they
// append. Those that wait say "Synchronize"; none does that does not wait.
std::optional<Kind> kind_of_level_zero(std::string_view name) {
  if (!name.starts_with("ze")) return std::nullopt;
  constexpr std::string_view kAppend = "zeCommandListAppend";
  constexpr std::string_view kCopies[] = {"MemoryCopy", "ImageCopy"};
  if (name.starts_with(kAppend)) {
    const std::string_view what = name.substr(kAppend.size());
    if (begins_with_one_of(what, kCopies)) return Kind::copy;
    if (what.starts_with("MemoryFill")) return Kind::set;
  }
  constexpr std::string_view kAllocs[] = {"zeMemAlloc", "zeVirtualMemMap"};
  constexpr std::string_view kReleases[] = {"zeMemFree", "zeVirtualMemUnmap"};
  if (begins_with_one_of(name, kAllocs)) return Kind::alloc;
  if (begins_with_one_of(name, kReleases)) return Kind::dealloc;
  if (name.find("Synchronize") != name.npos) return Kind::sync;
  return std::nullopt;
}

}  // namespace

Kind kind_of_call(std::string_view name) {
  while (name.starts_with('_')) name.remove_prefix(1);
  for (const std::string_view library : {"cuda", "cu", "hip"}) {
    if (!name.starts_with(library)) continue;
    name.remove_prefix(library.size());
    break;
  }
  constexpr std::string_view kAllocs[] = {"Malloc",       "HostAlloc",       "HostMalloc",
                                          "ExtMalloc",    "HostRegister",    "MemAlloc",
                                          "MemHostAlloc", "MemHostRegister", "MemMap"};
  constexpr std::string_view kReleases[] = {"Free",           "MemFree",           "HostFree",
                                            "HostUnregister", "MemHostUnregister", "MemUnmap"};
  constexpr std::string_view kSyncs[] = {"DeviceSynchronize",       "StreamSynchronize",
                                         "EventSynchronize",        "CtxSynchronize",
                                         "ExecutionCtxSynchronize", "ThreadSynchronize"};
  constexpr std::string_view kEvents[] = {"EventCreate", "EventRecord", "EventDestroy"};
  constexpr std::string_view kStreams[] = {"StreamCreate", "StreamDestroy", "StreamWaitEvent",
                                           "GreenCtxStreamCreate", "ExtStreamCreate"};
  if (const std::optional<Kind> kind = kind_of_unified_runtime(name)) return *kind;
  if (const std::optional<Kind> kind = kind_of_level_zero(name)) return *kind;
  if (launches(name)) return Kind::launch;
  if (name.starts_with("Memcpy")) return Kind::copy;
  if (name.starts_with("Memset")) return Kind::set;
  if (begins_with_one_of(name, kAllocs)) return Kind::alloc;
  if (begins_with_one_of(name, kReleases)) return Kind::dealloc;
  if (begins_with_one_of(name, kSyncs)) return Kind::sync;
  if (begins_with_one_of(name, kEvents)) return Kind::event;
  if (begins_with_one_of(name, kStreams)) return Kind::stream;
  return Kind::call;
}

}  // namespace gpuprof::kineto
