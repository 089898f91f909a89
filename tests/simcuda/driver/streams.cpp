// SPDX-License-Identifier: Apache-2.0
// The driver's streams, events and waits.
#include "tests/simcuda/driver/driver_api.h"

namespace gpuprof::simcuda {
namespace {

SIM_API(cuCtxSynchronize)
SIM_API(cuCtxSynchronize_v2)
SIM_API(cuStreamSynchronize)
SIM_API(cuStreamSynchronize_ptsz)
SIM_API(cuEventSynchronize)
SIM_API(cuEventCreate)
SIM_API(cuEventDestroy_v2)
SIM_API(cuEventQuery)
SIM_API(cuEventElapsedTime)
SIM_API(cuEventElapsedTime_v2)
SIM_API(cuEventRecord)
SIM_API(cuEventRecord_ptsz)
SIM_API(cuEventRecordWithFlags)
SIM_API(cuEventRecordWithFlags_ptsz)
SIM_API(cuStreamCreate)
SIM_API(cuStreamCreateWithPriority)
SIM_API(cuStreamDestroy_v2)
SIM_API(cuStreamQuery)
SIM_API(cuStreamQuery_ptsz)
SIM_GETTER(cuStreamGetId)
SIM_GETTER(cuStreamGetId_ptsz)
SIM_GETTER(cuStreamIsCapturing)
SIM_GETTER(cuStreamIsCapturing_ptsz)
SIM_GETTER(cuThreadExchangeStreamCaptureMode)
SIM_API(cuStreamWaitEvent)
SIM_API(cuStreamWaitEvent_ptsz)

}  // namespace
}  // namespace gpuprof::simcuda

using namespace gpuprof::simcuda;

// What needs a context that is current on the thread (CUDA driver API: CUDA_ERROR_INVALID_CONTEXT).
#define SIM_IN_CONTEXT(name, parameters, exempt, call)                               \
  CUresult name parameters {                                                         \
    if (!thread_state().has_context && !(exempt)) return CUDA_ERROR_INVALID_CONTEXT; \
    return as_driver(k_##name, [&] { return call; });                                \
  }
#define SIM_AS(name, parameters, call)                \
  CUresult name parameters {                          \
    return as_driver(k_##name, [&] { return call; }); \
  }

extern "C" {

SIM_AS(cuCtxSynchronize, (), cudaDeviceSynchronize())
SIM_AS(cuCtxSynchronize_v2, (CUcontext), cudaDeviceSynchronize())
SIM_AS(cuStreamSynchronize, (CUstream s), cudaStreamSynchronize(s))
SIM_AS(cuStreamSynchronize_ptsz, (CUstream s), cudaStreamSynchronize_ptsz(s))
SIM_AS(cuEventSynchronize, (CUevent e), cudaEventSynchronize(e))
SIM_IN_CONTEXT(cuEventCreate, (CUevent * e, unsigned flags), false,
               cudaEventCreateWithFlags(e, flags))
SIM_AS(cuEventDestroy_v2, (CUevent e), cudaEventDestroy(e))
SIM_AS(cuEventQuery, (CUevent e), cudaEventQuery(e))
// "In milliseconds with a resolution of around 0.5 microseconds" (CUDA driver API,
// cuEventElapsedTime); here to the nanosecond, as far as a float holds that.
SIM_AS(cuEventElapsedTime, (float* ms, CUevent from, CUevent to),
       cudaEventElapsedTime(ms, from, to))
SIM_AS(cuEventElapsedTime_v2, (float* ms, CUevent from, CUevent to),
       cudaEventElapsedTime(ms, from, to))
SIM_IN_CONTEXT(cuEventRecord, (CUevent e, CUstream s), s, cudaEventRecord(e, s))
SIM_IN_CONTEXT(cuEventRecord_ptsz, (CUevent e, CUstream s), s, cudaEventRecord_ptsz(e, s))
SIM_AS(cuEventRecordWithFlags, (CUevent e, CUstream s, unsigned f),
       cudaEventRecordWithFlags(e, s, f))
SIM_AS(cuEventRecordWithFlags_ptsz, (CUevent e, CUstream s, unsigned f),
       cudaEventRecordWithFlags_ptsz(e, s, f))
SIM_IN_CONTEXT(cuStreamCreate, (CUstream * s, unsigned flags), false,
               cudaStreamCreateWithFlags(s, flags))
SIM_AS(cuStreamCreateWithPriority, (CUstream * s, unsigned flags, int priority),
       cudaStreamCreateWithPriority(s, flags, priority))
SIM_AS(cuStreamDestroy_v2, (CUstream s), cudaStreamDestroy(s))
SIM_AS(cuStreamQuery, (CUstream s), cudaStreamQuery(s))
SIM_AS(cuStreamQuery_ptsz, (CUstream s), cudaStreamQuery_ptsz(s))
SIM_AS(cuStreamWaitEvent, (CUstream s, CUevent e, unsigned f), cudaStreamWaitEvent(s, e, f))
SIM_AS(cuStreamWaitEvent_ptsz, (CUstream s, CUevent e, unsigned f),
       cudaStreamWaitEvent_ptsz(s, e, f))
SIM_IN_CONTEXT(cuStreamGetId, (CUstream s, unsigned long long* id), s, cudaStreamGetId(s, id))
SIM_IN_CONTEXT(cuStreamGetId_ptsz, (CUstream s, unsigned long long* id), s,
               cudaStreamGetId_ptsz(s, id))
SIM_IN_CONTEXT(cuStreamIsCapturing, (CUstream s, CUstreamCaptureStatus* status), s,
               cudaStreamIsCapturing(s, reinterpret_cast<cudaStreamCaptureStatus*>(status)))
SIM_IN_CONTEXT(cuStreamIsCapturing_ptsz, (CUstream s, CUstreamCaptureStatus* status), s,
               cudaStreamIsCapturing_ptsz(s, reinterpret_cast<cudaStreamCaptureStatus*>(status)))
SIM_AS(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode * mode),
       cudaThreadExchangeStreamCaptureMode(reinterpret_cast<cudaStreamCaptureMode*>(mode)))

}  // extern "C"
