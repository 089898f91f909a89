// SPDX-License-Identifier: Apache-2.0
// What CUDA's driver offers to time work by events (CUDA driver API, "Event Management"). The
// driver's functions, since a failed one of the runtime would become the error that the program's
// next cudaGetLastError returns. They return a CUresult, 0 for success; handles are opaque.
#pragma once

#include <cstdint>

namespace gpuprof {

struct EventDriver {
  static constexpr int kNotReady = 600;  // CUDA_ERROR_NOT_READY

  // By whether a null stream stands for the thread's own.
  int (*is_capturing[2])(uint64_t stream, int* status);
  int (*record[2])(void* event, uint64_t stream);
  int (*stream_id[2])(uint64_t stream, unsigned long long* id);

  int (*create)(void** event, unsigned flags);
  int (*destroy)(void* event);
  int (*query)(void* event);
  // Milliseconds, with a resolution of around 0.5 microseconds (cuEventElapsedTime).
  int (*elapsed)(float* ms, void* from, void* to);
  int (*create_stream)(uint64_t* stream, unsigned flags);
  int (*destroy_stream)(uint64_t stream);
  int (*get_context)(void** context);
  int (*set_context)(void* context);
  int (*context_id)(void* context, unsigned long long* id);  // of the process's life; CUDA 12.0
  int (*context_device)(int* device);                        // of the current one
  int (*exchange_mode)(int* mode);

  // Where no context is current yet: the runtime's next call makes that of the thread's device so.
  int (*stream_context)(uint64_t stream, void** context);
  int (*primary_state)(int device, unsigned* flags, int* active);
  int (*primary_retain)(void** context, int device);
  int (*primary_release)(int device);
  int (*runtime_device)(int* device);  // cudaGetDevice; null: the runtime is linked into something
};

// Looked up once. Null where the process has no driver, or one without a function of these; then
// `lacks` names that. Any thread.
const EventDriver* event_driver(const char** lacks = nullptr);
void forget_event_driver();  // the next call looks again

// While another thread captures a stream in the mode "global", calls such as cuEventQuery are
// forbidden to all threads and end its capture, but for those in the mode "relaxed"
// (cuThreadExchangeStreamCaptureMode). The calling thread is in that mode for a scope.
class RelaxedCapture {
 public:
  explicit RelaxedCapture(const EventDriver& driver) : driver_(driver) {
    exchanged_ = driver_.exchange_mode(&mode_) == 0;
  }
  ~RelaxedCapture() {
    if (exchanged_) driver_.exchange_mode(&mode_);
  }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  const EventDriver& driver_;
  int mode_ = 2;  // CU_STREAM_CAPTURE_MODE_RELAXED
  bool exchanged_ = false;
};

}  // namespace gpuprof
