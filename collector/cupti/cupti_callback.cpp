// SPDX-License-Identifier: Apache-2.0
// CUPTI's callback on the traced runtime functions: the link between a hook and the GPU's records,
// and the only witness of calls made by libraries with a static CUDA runtime.
#include "collector/cupti/cupti_callback.h"

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstring>

#include "collector/cupti/cupti_graphs.h"
#include "collector/cupti/cupti_link.h"
#include "collector/cupti/cupti_records.h"
#include "collector/cupti/cupti_session.h"
#include "collector/cupti/cupti_teardown.h"
#include "collector/record/collector.h"
#include "collector/record/session.h"
#include "collector/record/shed.h"
#include "collector/sources/graphs.h"

namespace gpuprof {
namespace {

ApiId g_runtime_api[kMaxCallbackIds];
ApiId g_driver_api[kMaxCallbackIds];
std::atomic<bool> g_runtime_ours[kMaxCallbackIds], g_driver_ours[kMaxCallbackIds];

// What a call tells of the order of graph launches.
enum class OrderRole : uint8_t {
  none,
  launch,
  context_wait,
  stream_wait,
  event_wait,
  event_record,
  event_end,
  stream_end
};
std::atomic<OrderRole> g_runtime_role[kMaxCallbackIds], g_driver_role[kMaxCallbackIds];
std::atomic<bool> g_per_thread[2][kMaxCallbackIds];  // the default stream is the thread's own

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
    out.function = intern_text(data.symbolName);
    record.flags |= kFlagNamed;
  }
}

bool inside(Library library) { return t_state.inside[static_cast<size_t>(library)] != nullptr; }
bool hooked() { return inside(Library::cudart) || inside(Library::driver); }

OrderRole order_role(std::string_view name) {
  constexpr struct {
    std::string_view name;
    OrderRole role;
  } kRoles[] = {
      {"cudaGraphLaunch", OrderRole::launch},
      {"cudaDeviceSynchronize", OrderRole::context_wait},
      {"cudaStreamSynchronize", OrderRole::stream_wait},
      {"cudaEventSynchronize", OrderRole::event_wait},
      {"cudaEventRecord", OrderRole::event_record},
      {"cudaEventRecordWithFlags", OrderRole::event_record},
      {"cudaEventDestroy", OrderRole::event_end},
      {"cudaStreamDestroy", OrderRole::stream_end},
      {"cuGraphLaunch", OrderRole::launch},
      {"cuCtxSynchronize", OrderRole::context_wait},
      {"cuCtxSynchronize_v2", OrderRole::context_wait},
      {"cuStreamSynchronize", OrderRole::stream_wait},
      {"cuEventSynchronize", OrderRole::event_wait},
      {"cuEventRecord", OrderRole::event_record},
      {"cuEventRecordWithFlags", OrderRole::event_record},
      {"cuEventDestroy_v2", OrderRole::event_end},
      {"cuStreamDestroy_v2", OrderRole::stream_end},
  };
  for (const auto& row : kRoles) {
    if (row.name == name) return row.role;
  }
  return OrderRole::none;
}

OrderRole order_role(bool driver, uint32_t id) {
  return (driver ? g_driver_role : g_runtime_role)[id].load(std::memory_order_relaxed);
}

// Of all these calls the parameters begin with handles.
uint64_t handle_at(const CUpti_CallbackData& data, size_t index) {
  return static_cast<const uint64_t*>(data.functionParams)[index];
}
static_assert(offsetof(cudaGraphLaunch_v10000_params, stream) == 8);
static_assert(offsetof(cudaEventRecord_v3020_params, stream) == 8);
static_assert(offsetof(cudaEventRecordWithFlags_v11010_params, stream) == 8);
static_assert(offsetof(cuGraphLaunch_params, hStream) == 8);
static_assert(offsetof(cuEventRecord_params, hStream) == 8);
static_assert(offsetof(cuEventRecordWithFlags_params, hStream) == 8);

uint64_t context_of(const CUpti_CallbackData& data) {
  return reinterpret_cast<uint64_t>(data.context);
}

// The legacy default stream is one of each context and has its number; the thread's own has none.
uint64_t stream_number(const CUpti_CallbackData& data, uint64_t stream, bool per_thread) {
  constexpr uint64_t kDefault = 0, kLegacy = 1, kPerThread = 2;
  if (stream == kPerThread || (stream == kDefault && per_thread)) return 0;
  return stream == kDefault || stream == kLegacy ? context_of(data) : stream;
}

// Records of waits, and of graphs that begin and end on the host, do not name their device.
void note_place(bool driver, uint32_t id, const CUpti_CallbackData& data) {
  if (!data.context) return;
  if (!device_is_known(data.contextUid)) {
    uint32_t device = 0;
    const bool told = g_link.api.GetDeviceId(data.context, &device) == CUPTI_SUCCESS;
    note_device(data.contextUid, told ? device : kDeviceNotTold);
  }
  if (cupti_times_graphs() && order_role(driver, id) == OrderRole::launch) {
    note_graph_context(data.correlationId, data.contextUid);
  }
}

// The call in progress on this thread, and the correlation id of its last launch.
struct OrderCall {
  uint64_t begin, stream;
  uint32_t launch, last_launch;
};
thread_local OrderCall t_order __attribute__((tls_model("initial-exec")));

void note_order_entry(OrderRole role, bool per_thread, const CUpti_CallbackData& data) {
  const auto stream = [&](size_t index) {
    return stream_number(data, handle_at(data, index), per_thread);
  };
  t_order = {now_ticks(), 0, 0, 0};
  switch (role) {
    case OrderRole::launch: {
      const auto* const exec = reinterpret_cast<const void*>(handle_at(data, 0));
      t_order.launch = on_graph_launch(exec, context_of(data), stream(1), data.correlationId);
      return;
    }
    case OrderRole::stream_wait: t_order.stream = stream(0); return;
    case OrderRole::event_wait:
      // It may be recorded again, by another thread, before this call returns.
      where_event_is(handle_at(data, 0), t_order.stream, t_order.begin);
      return;
    case OrderRole::event_record:
      return on_event_record(handle_at(data, 0), stream(1), t_order.begin);
    case OrderRole::event_end: return on_event_record(handle_at(data, 0), 0, 0);
    case OrderRole::stream_end: return on_stream_end(stream(0));
    case OrderRole::context_wait:
    case OrderRole::none: return;
  }
}

void note_order_exit(OrderRole role, bool per_thread, uint64_t context,
                     const CUpti_CallbackData& data) {
  const auto* const result = static_cast<const int*>(data.functionReturnValue);
  const bool succeeded = result && *result == 0;
  const OrderCall call = t_order;
  t_order = {};
  if (role == OrderRole::launch) {
    t_order.last_launch = data.correlationId;
    if (call.begin != 0) return on_graph_launched(call.launch, data.correlationId, succeeded);
    // The driver's call inside the runtime's may have been seen.
    if (!data.functionParams || call.last_launch == data.correlationId) return;
    const auto* const exec = reinterpret_cast<const void*>(handle_at(data, 0));
    const uint64_t stream = stream_number(data, handle_at(data, 1), per_thread);
    return on_unseen_graph_launch(exec, context, stream, data.correlationId, succeeded);
  }
  if (!succeeded || call.begin == 0) return;
  if (role == OrderRole::context_wait) on_context_wait(context, call.begin);
  if (role == OrderRole::stream_wait || role == OrderRole::event_wait) {
    on_stream_wait(call.stream, call.begin);
  }
}

// What the order of graph launches hangs on: the outermost call of each.
void note_order(bool driver, uint32_t id, const CUpti_CallbackData& data) {
  const OrderRole role = order_role(driver, id);
  if (role == OrderRole::none) return;
  if (driver && (inside(Library::cudart) || t_state.runtime_call != 0)) return;
  const bool per_thread = g_per_thread[driver][id].load(std::memory_order_relaxed);
  if (data.callbackSite == CUPTI_API_ENTER) {
    const bool has_handles = data.functionParams || role == OrderRole::context_wait;
    if (has_handles) note_order_entry(role, per_thread, data);
    return;
  }
  const bool names_context = driver && id == CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize_v2;
  const uint64_t named = names_context && data.functionParams ? handle_at(data, 0) : 0;
  note_order_exit(role, per_thread, named ? named : context_of(data), data);
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
  look_for_silence(t_state.callback_stack ? record - 1 : record, end);
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
  if (is_shed(api_rows()[api])) return;
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

// Nothing is recorded now; a runtime call's exit is the outermost, a driver's where it is alone.
void note_call_before_teardown(bool driver, const CUpti_CallbackData& data) {
  ThreadState& thread = t_state;
  if (data.callbackSite == CUPTI_API_ENTER) {
    if (data.correlationData) *data.correlationData = 0;
    return;
  }
  if (!driver) thread.runtime_call = thread.claimed_call = 0;
  if (!driver || (thread.runtime_call == 0 && !inside(Library::cudart))) on_exit_before_teardown();
}

}  // namespace

void set_callback_api(CUpti_CallbackDomain domain, uint32_t callback_id, ApiId api) {
  if (callback_id >= kMaxCallbackIds) return;
  (domain == CUPTI_CB_DOMAIN_DRIVER_API ? g_driver_api : g_runtime_api)[callback_id] = api;
  auto& ours = domain == CUPTI_CB_DOMAIN_DRIVER_API ? g_driver_ours : g_runtime_ours;
  ours[callback_id].store(true, std::memory_order_relaxed);
  std::string_view name = api_rows()[api].name;
  const bool driver = domain == CUPTI_CB_DOMAIN_DRIVER_API;
  const bool per_thread = name.ends_with("_ptsz");
  if (per_thread) name.remove_suffix(5);
  g_per_thread[driver][callback_id].store(per_thread, std::memory_order_relaxed);
  (driver ? g_driver_role : g_runtime_role)[callback_id].store(order_role(name),
                                                               std::memory_order_relaxed);
}

ApiId callback_api(CUpti_CallbackDomain domain, uint32_t callback_id) {
  if (callback_id >= kMaxCallbackIds) return 0;
  return (domain == CUPTI_CB_DOMAIN_DRIVER_API ? g_driver_api : g_runtime_api)[callback_id];
}

bool orders_graphs(CUpti_CallbackDomain domain, uint32_t callback_id) {
  return order_role(domain == CUPTI_CB_DOMAIN_DRIVER_API, callback_id) != OrderRole::none;
}

bool calls_lack_ids() { return g_lack_ids.load(std::memory_order_relaxed); }

bool callback_is_ours(CUpti_CallbackDomain domain, uint32_t callback_id) {
  if (domain == CUPTI_CB_DOMAIN_RESOURCE) return true;
  if (callback_id >= kMaxCallbackIds) return false;
  const auto& ours = domain == CUPTI_CB_DOMAIN_DRIVER_API ? g_driver_ours : g_runtime_ours;
  return ours[callback_id].load(std::memory_order_relaxed);
}

// What CUPTI has not delivered of a context is gone with it. Whether the call is to be recorded,
// too.
static bool meets_end_of_context(bool driver, uint32_t id, const CUpti_CallbackData& data) {
  const ApiRow& row = api_rows()[(driver ? g_driver_api : g_runtime_api)[id]];
  if (row.role != ApiRole::end_context) return true;
  const bool outermost = !driver || t_state.runtime_call == 0;
  if (data.callbackSite == CUPTI_API_ENTER && outermost) cupti_flush(false);
  return activity_on(activity_of(row)) && !is_shed(row);
}

void CUPTIAPI on_api_callback(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                              const void* raw) {
  if (domain == CUPTI_CB_DOMAIN_RESOURCE) return on_graph_callback(id, raw);
  const bool driver = domain == CUPTI_CB_DOMAIN_DRIVER_API;
  if (!driver && domain != CUPTI_CB_DOMAIN_RUNTIME_API) return;
  if (t_state.blocked || id >= kMaxCallbackIds) return;
  const auto& data = *static_cast<const CUpti_CallbackData*>(raw);
  if (teardown_is_near()) return note_call_before_teardown(driver, data);
  if (!meets_end_of_context(driver, id, data)) return;
  note_place(driver, id, data);
  if (graphs_are_ordered()) note_order(driver, id, data);
  if (data.callbackSite == CUPTI_API_ENTER) {
    on_entry(driver, id, data);
  } else {
    on_exit(driver, id, data);
  }
}

}  // namespace gpuprof
