// SPDX-License-Identifier: Apache-2.0
// CUPTI's exported functions that only answer questions.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "tests/simcuda/core/later_callbacks.h"
#include "tests/simcuda/core/version.h"
#include "tests/simcuda/cupti/activity_api.h"
#include "tests/simcuda/cupti/session.h"

namespace gpuprof::simcuda {
namespace {

struct CallbackName {
  uint32_t cbid;
  const char* name;
};

constexpr CallbackName kRuntimeNames[] = {
#include "simcuda_runtime_cbids.inc"
};
constexpr CallbackName kDriverNames[] = {
#include "simcuda_driver_cbids.inc"
};

template <typename Name, size_t N>
const char* find_name(const Name (&names)[N], uint32_t cbid) {
  const auto* found = std::find_if(std::begin(names), std::end(names),
                                   [cbid](const Name& n) { return n.cbid == cbid; });
  if (found == std::end(names)) return nullptr;
  // A name ends in the release that brought it: an older library does not have that callback.
  const char* const suffix = std::strrchr(found->name, '_');
  const bool later =
      suffix != nullptr && suffix[1] == 'v' && std::atoi(suffix + 2) > cuda_version();
  return later ? nullptr : found->name;
}

const char* result_name(CUptiResult result) {
  switch (result) {
    case CUPTI_SUCCESS: return "CUPTI_SUCCESS";
    case CUPTI_ERROR_INVALID_PARAMETER: return "CUPTI_ERROR_INVALID_PARAMETER";
    case CUPTI_ERROR_MAX_LIMIT_REACHED: return "CUPTI_ERROR_MAX_LIMIT_REACHED";
    case CUPTI_ERROR_NOT_INITIALIZED: return "CUPTI_ERROR_NOT_INITIALIZED";
    case CUPTI_ERROR_INVALID_KIND: return "CUPTI_ERROR_INVALID_KIND";
    case CUPTI_ERROR_QUEUE_EMPTY: return "CUPTI_ERROR_QUEUE_EMPTY";
    case CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED:
      return "CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED";
    case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
      return "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED";
    case CUPTI_ERROR_UNKNOWN: return "CUPTI_ERROR_UNKNOWN";
    default: return "CUPTI_ERROR";
  }
}

CUptiResult stream_id(CUstream stream, bool per_thread, uint32_t* out) {
  die_without_driver();
  if (switches().no_driver) return CUPTI_ERROR_UNKNOWN;
  if (out == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  Session::instance().attach();
  SimCore* core = Session::instance().core();
  if (core == nullptr) return CUPTI_ERROR_NOT_INITIALIZED;
  *out = core->stream_id(stream, per_thread);
  return *out != 0 ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_STREAM;
}

}  // namespace
}  // namespace gpuprof::simcuda

using namespace gpuprof::simcuda;

extern "C" {

CUptiResult cuptiGetVersion(uint32_t* version) {
  die_without_driver();
  if (version == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *version = cupti_version();
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t cbid, const char** name) {
  die_without_driver();
  if (name == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *name = nullptr;
  cbid = told_id(domain, cbid);
  if (domain == CUPTI_CB_DOMAIN_RUNTIME_API) *name = find_name(kRuntimeNames, cbid);
  if (domain == CUPTI_CB_DOMAIN_RUNTIME_API && *name == nullptr) {
    *name = find_name(kLaterCallbackNames, cbid);
  }
  if (domain == CUPTI_CB_DOMAIN_DRIVER_API) *name = find_name(kDriverNames, cbid);
  return *name != nullptr ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

CUptiResult cuptiGetResultString(CUptiResult result, const char** text) {
  die_without_driver();
  if (text == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *text = result_name(result);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetErrorMessage(CUptiResult result, const char** text) {
  return cuptiGetResultString(result, text);
}

CUptiResult cuptiGetStreamId(CUcontext, CUstream stream, uint32_t* out) {
  return stream_id(stream, false, out);
}

CUptiResult cuptiGetStreamIdEx(CUcontext, CUstream stream, uint8_t per_thread, uint32_t* out) {
  return stream_id(stream, per_thread != 0, out);
}

// A node's handle is its id here.
CUptiResult cuptiGetGraphNodeId(CUgraphNode node, uint64_t* id) {
  if (node == nullptr || id == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *id = reinterpret_cast<uint64_t>(node);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetGraphExecId(CUgraphExec exec, uint32_t* id) {
  SimCore* const core = Session::instance().core();
  if (exec == nullptr || id == nullptr || core == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *id = core->graph_exec_id(reinterpret_cast<cudaGraphExec_t>(exec));
  return *id != 0 ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

CUptiResult cuptiGetDeviceId(CUcontext context, uint32_t* out) {
  int device = 0;
  if (out == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  if (!device_of_context(context, &device)) return CUPTI_ERROR_INVALID_CONTEXT;
  *out = static_cast<uint32_t>(device);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetContextId(CUcontext context, uint32_t* out) {
  int device = 0;
  if (out == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  if (!device_of_context(context, &device)) return CUPTI_ERROR_INVALID_CONTEXT;
  *out = static_cast<uint32_t>(device) + 1;
  return CUPTI_SUCCESS;
}

}  // extern "C"
