// SPDX-License-Identifier: Apache-2.0
// CUPTI's callback on the traced runtime functions: the link between a hook and the GPU's records,
// and the only witness of calls made by libraries with a static CUDA runtime.
#include "collector/cupti_callback.h"

#include <cuda_runtime_api.h>

#include <cstring>

#include "collector/collector.h"
#include "collector/session.h"

namespace gpuprof {
namespace {

constexpr size_t kMaxCallbackIds = 2048;
ApiId g_api_of[kMaxCallbackIds];

bool is_launch_kernel(uint32_t id) {
  return id == CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000 ||
         id == CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_ptsz_v7000;
}

bool is_launch_config(uint32_t id) {
  return id == CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060 ||
         id == CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_ptsz_v11060;
}

void fill_launch(Record& record, uint32_t id, const CUpti_CallbackData& data) {
  auto& out = record.launch;
  dim3 grid(0, 0, 0), block(0, 0, 0);
  if (is_launch_kernel(id) && data.functionParams) {
    const auto& in = *static_cast<const cudaLaunchKernel_v7000_params*>(data.functionParams);
    out.function = reinterpret_cast<uint64_t>(in.func);
    out.stream = reinterpret_cast<uint64_t>(in.stream);
    out.shared_bytes = static_cast<uint32_t>(in.sharedMem);
    grid = in.gridDim, block = in.blockDim;
  } else if (is_launch_config(id) && data.functionParams) {
    const auto& in = *static_cast<const cudaLaunchKernelExC_v11060_params*>(data.functionParams);
    out.function = reinterpret_cast<uint64_t>(in.func);
    if (in.config) {
      out.stream = reinterpret_cast<uint64_t>(in.config->stream);
      out.shared_bytes = static_cast<uint32_t>(in.config->dynamicSmemBytes);
      grid = in.config->gridDim, block = in.config->blockDim;
    }
  }
  out.grid_x = grid.x;
  out.grid_y = static_cast<uint16_t>(grid.y), out.grid_z = static_cast<uint16_t>(grid.z);
  out.block_x = static_cast<uint16_t>(block.x);
  out.block_y = static_cast<uint16_t>(block.y), out.block_z = static_cast<uint16_t>(block.z);
  if (data.symbolName) out.name = intern_string(data.symbolName);
}

// A call that no hook saw. What it was about comes from CUPTI's own records of the same correlation.
void record_call(uint32_t id, const CUpti_CallbackData& data, uint64_t begin) {
  const ApiId api = g_api_of[id];
  const uint64_t end = now_ticks();
  Record* const record = reserve_record();
  if (!record) return;
  record->begin = begin;
  record->end = end;
  record->correlation = data.correlationId;
  record->api = api;
  record->kind = api_rows()[api].kind;
  record->flags = kFlagFromCallback;
  std::memset(record->words, 0, sizeof record->words);
  if (record->kind == Kind::launch) fill_launch(*record, id, data);
  commit_record();
}

}  // namespace

void set_callback_api(uint32_t callback_id, ApiId api) {
  if (callback_id < kMaxCallbackIds) g_api_of[callback_id] = api;
}

void CUPTIAPI on_api_callback(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                              const void* raw) {
  ThreadState& thread = t_state;
  if (domain != CUPTI_CB_DOMAIN_RUNTIME_API || thread.blocked || id >= kMaxCallbackIds) return;
  const auto& data = *static_cast<const CUpti_CallbackData*>(raw);
  const bool hooked = thread.inside[static_cast<size_t>(Library::cudart)] != nullptr;
  if (data.callbackSite == CUPTI_API_ENTER) {
    if (hooked) {
      if (thread.correlation == 0) thread.correlation = data.correlationId;
    } else if (data.correlationData) {
      *data.correlationData = window_is_open() ? now_ticks() : 0;
    }
  } else if (!hooked && data.correlationData && *data.correlationData && window_is_open()) {
    record_call(id, data, *data.correlationData);
  }
}

}  // namespace gpuprof
