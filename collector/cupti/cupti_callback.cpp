// SPDX-License-Identifier: Apache-2.0
// CUPTI's callback on the traced runtime functions: the link between a hook and the GPU's records,
// and the only witness of calls made by libraries with a static CUDA runtime.
#include "collector/cupti/cupti_callback.h"

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstring>

#include "collector/cupti/cupti_graphs.h"
#include "collector/record/collector.h"
#include "collector/record/session.h"
#include "collector/sources/graphs.h"

namespace gpuprof {
namespace {

constexpr size_t kMaxCallbackIds = 2048;
ApiId g_runtime_api[kMaxCallbackIds];
ApiId g_driver_api[kMaxCallbackIds];
std::atomic<bool> g_runtime_ours[kMaxCallbackIds], g_driver_ours[kMaxCallbackIds];
std::atomic<bool> g_runtime_waits[kMaxCallbackIds], g_driver_waits[kMaxCallbackIds];

std::atomic<bool> g_lack_ids{false};

// A launch as the API was given it, whichever of the six parameter structs that was in.
struct LaunchArguments {
  const void* function = nullptr;
  const void* stream = nullptr;
  uint32_t grid[3] = {}, block[3] = {};
  uint32_t shared_bytes = 0;
};

LaunchArguments of_dim3(const void* function, const void* stream, dim3 grid, dim3 block,
                        size_t shared) {
  return {function,
          stream,
          {grid.x, grid.y, grid.z},
          {block.x, block.y, block.z},
          static_cast<uint32_t>(shared)};
}

LaunchArguments driver_arguments(uint32_t id, const void* params) {
  switch (id) {
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz: {
      const auto& in = *static_cast<const cuLaunchKernel_params*>(params);
      return {in.f,
              in.hStream,
              {in.gridDimX, in.gridDimY, in.gridDimZ},
              {in.blockDimX, in.blockDimY, in.blockDimZ},
              in.sharedMemBytes};
    }
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz: {
      const auto& in = *static_cast<const cuLaunchKernelEx_params*>(params);
      if (!in.config) return {in.f};
      const CUlaunchConfig& config = *in.config;
      return {in.f,
              config.hStream,
              {config.gridDimX, config.gridDimY, config.gridDimZ},
              {config.blockDimX, config.blockDimY, config.blockDimZ},
              config.sharedMemBytes};
    }
    case CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch:
    case CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz: {
      const auto& in = *static_cast<const cuGraphLaunch_params*>(params);
      return {in.hGraph, in.hStream};
    }
    default: return {};
  }
}

LaunchArguments runtime_arguments(uint32_t id, const void* params) {
  switch (id) {
    case CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000:
    case CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_ptsz_v7000: {
      const auto& in = *static_cast<const cudaLaunchKernel_v7000_params*>(params);
      return of_dim3(in.func, in.stream, in.gridDim, in.blockDim, in.sharedMem);
    }
    case CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060:
    case CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_ptsz_v11060: {
      const auto& in = *static_cast<const cudaLaunchKernelExC_v11060_params*>(params);
      if (!in.config) return {in.func};
      return of_dim3(in.func, in.config->stream, in.config->gridDim, in.config->blockDim,
                     in.config->dynamicSmemBytes);
    }
    case CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000:
    case CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_ptsz_v10000: {
      const auto& in = *static_cast<const cudaGraphLaunch_v10000_params*>(params);
      return {in.graphExec, in.stream};
    }
    default: return {};
  }
}

void fill_launch(Record& record, bool driver, uint32_t id, const CUpti_CallbackData& data) {
  LaunchArguments in;
  if (data.functionParams) {
    in = driver ? driver_arguments(id, data.functionParams)
                : runtime_arguments(id, data.functionParams);
  }
  auto& out = record.launch;
  out.function = reinterpret_cast<uint64_t>(in.function);
  out.stream = reinterpret_cast<uint64_t>(in.stream);
  out.shared_bytes = in.shared_bytes & 0xfffff;
  out.grid_x = in.grid[0], out.grid_y = in.grid[1];
  out.grid_z = static_cast<uint16_t>(in.grid[2]);
  out.block_x = in.block[0], out.block_y = in.block[1];
  out.block_z = static_cast<uint16_t>(in.block[2]);
  if (data.symbolName) {
    out.function = intern_string(data.symbolName);
    record.flags |= kFlagNamed;
  }
}

bool inside(Library library) { return t_state.inside[static_cast<size_t>(library)] != nullptr; }
bool hooked() { return inside(Library::cudart) || inside(Library::driver); }

bool launches_graph(bool driver, uint32_t id) {
  if (driver) {
    return id == CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch ||
           id == CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz;
  }
  return id == CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000 ||
         id == CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_ptsz_v10000;
}

void note_graph_launch(bool driver, uint32_t id, const CUpti_CallbackData& data) {
  if (!launches_graph(driver, id) || !data.functionParams) return;
  const LaunchArguments in = driver ? driver_arguments(id, data.functionParams)
                                    : runtime_arguments(id, data.functionParams);
  on_graph_launch(in.function, data.correlationId);
}

// When the calling thread began to wait for a device.
thread_local uint64_t t_wait_begin __attribute__((tls_model("initial-exec")));

void note_device_wait(const CUpti_CallbackData& data) {
  if (data.callbackSite == CUPTI_API_ENTER) {
    t_wait_begin = now_ticks();
    return;
  }
  const auto* const result = static_cast<const int*>(data.functionReturnValue);
  if (result && *result == 0) on_device_wait(t_wait_begin, now_ticks());
}

bool waits_for_device(bool driver, uint32_t id) {
  return (driver ? g_driver_waits : g_runtime_waits)[id].load(std::memory_order_relaxed);
}

// What the order of graph launches hangs on: the outermost call of each.
void note_order(bool driver, uint32_t id, const CUpti_CallbackData& data) {
  if (driver && (inside(Library::cudart) || t_state.runtime_call != 0)) return;
  if (waits_for_device(driver, id)) return note_device_wait(data);
  if (data.callbackSite == CUPTI_API_ENTER) note_graph_launch(driver, id, data);
}

// Captures of a stream, where hooks do not tell of them.
void note_capture(ApiRole role, const CUpti_CallbackData& data) {
  const auto* const result = static_cast<const int*>(data.functionReturnValue);
  if (!result || *result != 0) return;
  const BlockedScope blocked;
  if (role == ApiRole::begin_capture) capture_began();
  if (role == ApiRole::end_capture) capture_ended();
}

// A call that no hook saw. What it was about comes from CUPTI's own records of the same
// correlation.
void record_call(bool driver, uint32_t id, const CUpti_CallbackData& data, uint64_t begin) {
  const ApiId api = (driver ? g_driver_api : g_runtime_api)[id];
  const uint64_t end = now_ticks();
  Record* const record =
      reserve_record_after({t_state.callback_stack, t_state.callback_stack_ticks}, begin, end);
  if (!record) return;
  record->begin = begin;
  record->end = end;
  record->correlation = data.correlationId;
  record->api = api;
  record->kind = api_rows()[api].kind;
  record->flags = static_cast<uint8_t>(kFlagFromCallback | (driver ? kFlagDriver : 0));
  std::memset(record->words, 0, sizeof record->words);
  if (record->kind == Kind::launch) fill_launch(*record, driver, id, data);
  note_created_call(*record, t_state.callback_stack);
  commit_record(record);
  if (record->kind == Kind::call) note_capture(api_rows()[api].role, data);
}

void on_entry(bool driver, uint32_t id, const CUpti_CallbackData& data) {
  ThreadState& thread = t_state;
  if (data.correlationId == 0) g_lack_ids.store(true, std::memory_order_relaxed);
  if (data.correlationData) *data.correlationData = 0;
  if (hooked()) {
    // The id of the call that the outermost hook is around.
    if (driver != inside(Library::cudart) && thread.correlation == 0) {
      thread.correlation = data.correlationId;
    }
    return;
  }
  if (driver && thread.runtime_call != 0) return;  // the runtime's own call into the driver
  if (!driver) thread.runtime_call = data.correlationId;
  if (!data.correlationData || !window_is_open()) return;
  const ApiId api = (driver ? g_driver_api : g_runtime_api)[id];
  TakenStack stack;
  if (g_hook_flags[api].load(std::memory_order_relaxed) & kHookStack) {
    stack = take_stack(api);
  }
  forget_created_nodes();
  thread.callback_stack = stack.id;
  thread.callback_stack_ticks = stack.ticks;
  *data.correlationData = now_ticks();
}

void on_exit(bool driver, uint32_t id, const CUpti_CallbackData& data) {
  if (!driver) {
    ThreadState& thread = t_state;
    thread.runtime_call = 0;
    const uint32_t claimed = thread.claimed_call;
    thread.claimed_call = 0;
    if (claimed != 0 && claimed == data.correlationId) return;
  }
  if (hooked() || !data.correlationData || !*data.correlationData || !window_is_open()) return;
  record_call(driver, id, data, *data.correlationData);
}

}  // namespace

void set_callback_api(CUpti_CallbackDomain domain, uint32_t callback_id, ApiId api) {
  if (callback_id >= kMaxCallbackIds) return;
  (domain == CUPTI_CB_DOMAIN_DRIVER_API ? g_driver_api : g_runtime_api)[callback_id] = api;
  auto& ours = domain == CUPTI_CB_DOMAIN_DRIVER_API ? g_driver_ours : g_runtime_ours;
  ours[callback_id].store(true, std::memory_order_relaxed);
  const char* const name = api_rows()[api].name;
  auto& waits = domain == CUPTI_CB_DOMAIN_DRIVER_API ? g_driver_waits : g_runtime_waits;
  waits[callback_id].store(std::strcmp(name, "cudaDeviceSynchronize") == 0 ||
                               std::strncmp(name, "cuCtxSynchronize", 16) == 0,
                           std::memory_order_relaxed);
}

bool orders_graphs(CUpti_CallbackDomain domain, uint32_t callback_id) {
  const bool driver = domain == CUPTI_CB_DOMAIN_DRIVER_API;
  return launches_graph(driver, callback_id) || waits_for_device(driver, callback_id);
}

bool calls_lack_ids() { return g_lack_ids.load(std::memory_order_relaxed); }

bool callback_is_ours(CUpti_CallbackDomain domain, uint32_t callback_id) {
  if (domain == CUPTI_CB_DOMAIN_RESOURCE) return true;
  if (callback_id >= kMaxCallbackIds) return false;
  const auto& ours = domain == CUPTI_CB_DOMAIN_DRIVER_API ? g_driver_ours : g_runtime_ours;
  return ours[callback_id].load(std::memory_order_relaxed);
}

void CUPTIAPI on_api_callback(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                              const void* raw) {
  if (domain == CUPTI_CB_DOMAIN_RESOURCE) return on_graph_callback(id, raw);
  const bool driver = domain == CUPTI_CB_DOMAIN_DRIVER_API;
  if (!driver && domain != CUPTI_CB_DOMAIN_RUNTIME_API) return;
  if (t_state.blocked || id >= kMaxCallbackIds) return;
  const auto& data = *static_cast<const CUpti_CallbackData*>(raw);
  if (graphs_are_ordered()) note_order(driver, id, data);
  if (data.callbackSite == CUPTI_API_ENTER) {
    on_entry(driver, id, data);
  } else {
    on_exit(driver, id, data);
  }
}

}  // namespace gpuprof
