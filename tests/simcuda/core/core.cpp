// SPDX-License-Identifier: Apache-2.0
#include "tests/simcuda/core/core.h"

#include <cupti.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "tests/simcuda/core/clock.h"
#include "tests/simcuda/core/settings.h"
#include "tests/simcuda/core/start.h"
#include "tests/simcuda/core/truth_log.h"

namespace gpuprof::simcuda {
namespace {

constexpr uint32_t kDefaultStreamId = 7;  // CUPTI's number for the legacy default stream

}  // namespace

ThreadState& thread_state() {
  static thread_local ThreadState* state = nullptr;
  if (state == nullptr) {
    // Kept reachable, so that leak checkers see no leak.
    static std::mutex& mutex = *new std::mutex();
    static std::vector<ThreadState*>& all = *new std::vector<ThreadState*>();
    state = new ThreadState();
    state->tid = static_cast<uint32_t>(::syscall(SYS_gettid));
    const std::lock_guard<std::mutex> lock(mutex);
    all.push_back(state);
  }
  return *state;
}

Core& Core::instance() {
  static Core& core = *new Core();
  // Outside any static guard: dlopen takes the loader's lock, which a caller may hold.
  static std::atomic<bool> loaded{false};
  if (!loaded.load(std::memory_order_acquire) && !loaded.exchange(true)) {
    core.load_cupti();
  }
  return core;
}

Core::Core()
    : timeline_(*this),
      memory_(settings().devices, settings().memory_bytes),
      devices_(static_cast<size_t>(settings().devices)) {
  correlation_.store(settings().first_correlation - 1);
  for (size_t i = 0; i < devices_.size(); ++i) devices_[i].index = static_cast<int>(i);
  pthread_atfork(nullptr, nullptr, &Core::set_forked);
}

void Core::load_cupti() {
  void* cupti = ::dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
  if (cupti == nullptr) cupti = ::dlopen("libcupti.so.12", RTLD_NOW | RTLD_NOLOAD);
  if (cupti == nullptr) return;
  void* attach = ::dlsym(cupti, "simcuda_cupti_attach_to");
  if (attach != nullptr) reinterpret_cast<void (*)(SimCore*)>(attach)(this);
}

void Core::set_forked() {
  Core& core = instance();
  thread_state().tid = static_cast<uint32_t>(::syscall(SYS_gettid));
  // Without a context, too: cudaGetDeviceCount "initializes the CUDA Driver API (via cuInit)", and
  // "subsequent forks [...] will fail with a CUDA initialization error" (PyTorch, notes/cuda,
  // "Device-agnostic code").
  if (driver_is_started()) core.forked_.store(true);
}

cudaError_t Core::health() const {
  if (forked_.load(std::memory_order_relaxed)) return cudaErrorInitializationError;
  if (settings().no_driver) return cudaErrorInsufficientDriver;
  return cudaSuccess;
}

bool Core::wanted(int activity_kind) const {
  const CuptiSink* cupti = sink();
  return cupti != nullptr && (cupti->wanted() >> activity_kind & 1) != 0;
}

Device& Core::device(int index) {
  Device& device = devices_[static_cast<size_t>(index)];
  if (device.context_id != 0) return device;
  device.context_id = static_cast<uint32_t>(index) + 1;
  if (CuptiSink* cupti = sink()) cupti->context_created(index, device.context_id);
  device.legacy_stream = make_stream(device, kDefaultStreamId, 0, 0);
  device.legacy_stream->legacy = true;
  announce_stream(*device.legacy_stream, 0);
  return device;
}

std::shared_ptr<Stream> Core::make_stream(Device& device, uint32_t id, unsigned flags,
                                          int priority) {
  auto stream = std::make_shared<Stream>();
  stream->device = device.index;
  stream->context_id = device.context_id;
  stream->id = id;
  stream->flags = flags;
  stream->priority = priority;
  stream->blocking = (flags & cudaStreamNonBlocking) == 0;
  device.streams.push_back(stream);
  return stream;
}

void Core::announce_stream(const Stream& stream, uint32_t correlation) {
  CuptiSink* cupti = sink();
  if (cupti == nullptr) return;
  cupti->stream_created(StreamInfo{stream.device, stream.context_id, stream.id,
                                   static_cast<uint32_t>(stream.priority), !stream.blocking,
                                   stream.legacy, correlation});
}

std::shared_ptr<Stream> Core::create_stream(Device& device, unsigned flags, int priority,
                                            uint32_t correlation, uint32_t context_id) {
  auto stream = make_stream(device, device.next_stream_id++, flags, priority);
  const auto& current = thread_state().context;
  if (context_id == 0 && current != nullptr) context_id = current->id;
  if (context_id != 0) stream->context_id = context_id;
  streams_[stream.get()] = stream;
  announce_stream(*stream, correlation);
  return stream;
}

std::shared_ptr<Stream> Core::stream(cudaStream_t handle, bool per_thread_default) {
  const bool null_handle = handle == nullptr;
  if (handle == cudaStreamLegacy || (null_handle && !per_thread_default)) {
    if (const auto& current = thread_state().context) return current->legacy_stream;
    return device(thread_state().device).legacy_stream;
  }
  if (null_handle || handle == cudaStreamPerThread) {
    Device& current = device(thread_state().device);
    std::shared_ptr<Stream>& own = thread_state().default_streams[current.index];
    if (own == nullptr) {
      own = make_stream(current, current.next_stream_id++, 0, 0);
      announce_stream(*own, 0);
    }
    return own;
  }
  const auto it = streams_.find(handle);
  return it == streams_.end() ? nullptr : it->second;
}

std::shared_ptr<Context> Core::create_context(int index) {
  Device& owner = device(index);
  auto context = std::make_shared<Context>();
  context->device = index;
  context->id = ++context_id_;
  context->legacy_stream = make_stream(owner, kDefaultStreamId, 0, 0);
  context->legacy_stream->legacy = true;
  context->legacy_stream->context_id = context->id;
  contexts_[context.get()] = context;
  if (CuptiSink* cupti = sink()) cupti->context_created(index, context->id);
  return context;
}

std::shared_ptr<Context> Core::context(const void* handle) const {
  const auto it = contexts_.find(handle);
  return it == contexts_.end() ? nullptr : it->second;
}

std::shared_ptr<Context> Core::context_of(uint32_t id) const {
  for (const auto& [handle, context] : contexts_) {
    if (context->id == id) return context;
  }
  return nullptr;
}

// "Destroys and cleans up all resources associated with the context" (cuCtxDestroy).
bool Core::destroy_context(const void* handle) {
  const auto gone = context(handle);
  if (gone == nullptr) return false;
  std::erase_if(events_, [&](const auto& each) { return each.second->context_id == gone->id; });
  std::erase_if(streams_, [&](const auto& each) { return each.second->context_id == gone->id; });
  std::erase_if(device(gone->device).streams,
                [&](const auto& each) { return each->context_id == gone->id; });
  contexts_.erase(handle);
  return true;
}

bool Core::destroy_stream(cudaStream_t handle) {
  const auto it = streams_.find(handle);
  if (it == streams_.end()) return false;
  const std::shared_ptr<Stream> stream = it->second;
  Device& owner = device(stream->device);
  auto& orphans = owner.orphans;
  const uint64_t now = now_ns();
  std::erase_if(orphans, [now](const Orphan& orphan) {
    return orphan.op->resolved && orphan.op->info.end < now;
  });
  if (stream->last != nullptr) orphans.push_back({stream->last, stream->blocking});
  owner.streams.erase(std::find(owner.streams.begin(), owner.streams.end(), stream));
  streams_.erase(it);
  return true;
}

int Core::device_count() { return settings().devices; }

DeviceModel Core::device_model(int) {
  return DeviceModel{"Simulated GPU (simcuda)", settings().memory_bytes, 132, 1'980'000};
}

uint32_t Core::stream_id(cudaStream_t handle, bool per_thread_default) {
  const Lock held = lock();
  const auto found = stream(handle, per_thread_default);
  return found == nullptr ? 0 : found->id;
}

uint32_t Core::graph_exec_id(cudaGraphExec_t handle) {
  const Lock held = lock();
  const auto exec = graph_exec(handle);
  return exec == nullptr ? 0 : exec->id;
}

CaptureInfo Core::capture_info(cudaStream_t handle, bool per_thread_default) {
  const Lock held = lock();
  const auto found = stream(handle, per_thread_default);
  if (found == nullptr || found->capture == nullptr) return {};
  return {true, found->capture->id, reinterpret_cast<cudaGraph_t>(found->capture->graph.get()),
          found->last_node};
}

std::vector<StreamInfo> Core::live_streams() {
  const Lock held = lock();
  std::vector<StreamInfo> out;
  for (const Device& d : devices_) {
    for (const auto& s : d.streams) {
      out.push_back(StreamInfo{s->device, s->context_id, s->id, static_cast<uint32_t>(s->priority),
                               !s->blocking, s->legacy, 0});
    }
  }
  return out;
}

void Core::start() {
  start_driver();
  wait_for_driver();
}
bool Core::is_started() const { return driver_is_started(); }
uint64_t Core::seed() { return settings().seed; }
bool Core::is_known(const void* pointer, size_t bytes) {
  const auto known = memory_.find(pointer);
  return known && bytes <= known->address + known->bytes - reinterpret_cast<uintptr_t>(pointer);
}

bool Core::truth_enabled() { return TruthLog::instance().enabled(); }
void Core::truth_line(std::string_view json) { TruthLog::instance().append(json); }

}  // namespace gpuprof::simcuda

extern "C" __attribute__((visibility("default"))) gpuprof::simcuda::SimCore* simcuda_core(void) {
  return &gpuprof::simcuda::Core::instance();
}
