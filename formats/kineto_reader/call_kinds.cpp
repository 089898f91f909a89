// SPDX-License-Identifier: Apache-2.0
#include "formats/kineto_reader/call_kinds.h"

#include <algorithm>
#include <iterator>

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
         name.find("LaunchCooperative") != std::string_view::npos;
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
  // Intel's Unified Runtime names a queue's calls after what they enqueue.
  constexpr std::string_view kEnqueue = "urEnqueue";
  if (name.starts_with(kEnqueue)) {
    if (name.find("Memcpy") != std::string_view::npos) return Kind::copy;
    if (name.find("Fill") != std::string_view::npos) return Kind::set;
  }
  if (name.starts_with("urQueueFinish") || name.starts_with("urEventWait")) return Kind::sync;
  if (name.starts_with("urUSM")) {
    if (name.ends_with("Alloc")) return Kind::alloc;
    if (name.ends_with("Free")) return Kind::dealloc;
  }
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
