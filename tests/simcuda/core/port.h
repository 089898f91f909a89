// SPDX-License-Identifier: Apache-2.0
// The seam between the simulated libraries. The core (virtual devices, truth log) and
// the runtime's functions live in libcuda; libcupti and libnccl reach it through SimCore, and it
// reports to libcupti through CuptiSink. All libraries come from one build, so plain C++ interfaces
// serve as the ABI.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace gpuprof::simcuda {

enum class GpuOpKind : uint8_t { kMarker, kKernel, kMemcpy, kMemset, kGraph };

// Values are those of CUpti_ActivityMemcpyKind.
enum class CopyKind : uint8_t { kNone = 0, kHtoD = 1, kDtoH = 2, kDtoD = 8, kHtoH = 9, kPtoP = 10 };

// Values are those of CUpti_ActivityMemoryKind.
enum class MemoryKind : uint8_t {
  kUnknown = 0,
  kPageable = 1,
  kPinned = 2,
  kDevice = 3,
  kManaged = 5,
};

// One piece of device work. Times are CLOCK_MONOTONIC ns; `begin`/`end` hold once it is resolved.
struct GpuOpInfo {
  GpuOpKind kind = GpuOpKind::kMarker;
  CopyKind copy_kind = CopyKind::kNone;
  MemoryKind src_kind = MemoryKind::kUnknown;
  MemoryKind dst_kind = MemoryKind::kUnknown;
  bool async = true;
  bool cooperative = false;
  const char* name = "";  // mangled kernel name; lives as long as the process
  uint32_t grid[3] = {1, 1, 1};
  uint32_t block[3] = {1, 1, 1};
  uint32_t cluster[3] = {0, 0, 0};
  uint32_t dynamic_shmem = 0;
  uint32_t memset_value = 0;
  uint64_t bytes = 0;
  uint64_t copy_count = 1;  // of copies made in one batch
  int src_device = 0;
  int dst_device = 0;
  int device = 0;
  uint32_t context_id = 0;
  uint32_t stream_id = 0;
  uint32_t correlation = 0;
  uint32_t graph_id = 0;           // 0: not part of a graph launch
  uint64_t graph_node_id = 0;      // of the node of the executable graph
  uint64_t graph_original_id = 0;  // of the captured node that it is a clone of
  uint64_t arrived = 0;            // when the GPU had it, the launch latency after its submission
  uint64_t begin = 0;
  uint64_t end = 0;
  bool begins_on_host = false, ends_on_host = false;  // of a graph: its first, its last node
  bool recorded_as_kernel = false;                    // a copy or set
};

// A call of the runtime or the driver API, as CUPTI's callbacks and API records show it.
struct ApiEvent {
  bool driver = false;  // domain: runtime or driver
  uint32_t cbid = 0;
  const char* name = "";
  const void* params = nullptr;
  void* return_value = nullptr;
  const char* symbol = nullptr;
  int device = 0;
  uint32_t correlation = 0;
  uint64_t correlation_data = 0;  // the client's word, kept from enter to exit
  uint64_t begin = 0;
  uint64_t end = 0;
  uint32_t return_code = 0;
  bool enter_seen = false;
};

// Values are those of CUpti_ActivitySynchronizationType.
enum class SyncKind : uint8_t { kEvent = 1, kStreamWaitEvent = 2, kStream = 3, kContext = 4 };

struct SyncInfo {
  SyncKind kind = SyncKind::kContext;
  int device = 0;
  uint32_t context_id = 0;
  uint32_t stream_id = 0;
  uint32_t event_id = 0;
  uint64_t event_sync_id = 0;
  uint32_t correlation = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
};

struct EventRecordInfo {
  int device = 0;
  uint32_t context_id = 0;
  uint32_t stream_id = 0;
  uint32_t event_id = 0;
  uint64_t event_sync_id = 0;
  uint32_t correlation = 0;
  uint64_t time = 0;  // when the device reached it
};

struct MemoryInfo {
  bool allocation = true;
  MemoryKind kind = MemoryKind::kDevice;
  bool async = false;
  uint64_t address = 0;
  uint64_t bytes = 0;
  uint64_t time = 0;
  int device = 0;
  uint32_t context_id = 0;
  uint32_t stream_id = 0;
  uint32_t correlation = 0;
  uint64_t pool_address = 0;
  uint64_t pool_used = 0;
};

// A change of a graph, as CUPTI's resource callbacks tell it. Handles are the ids themselves.
enum class GraphChange : uint8_t {
  kNodeCreated,
  kNodeCloned,
  kExecStarting,
  kExecCreated,
  kExecDestroyed
};
struct GraphEvent {
  GraphChange change;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  uint32_t exec_id = 0;
  uint64_t node = 0;
  uint64_t original_node = 0;
  int node_type = 0;  // CUgraphNodeType
};

// What a stream is being captured into.
struct CaptureInfo {
  bool active = false;
  uint64_t id = 0;
  cudaGraph_t graph = nullptr;
  uint64_t last_node = 0;  // the newest node of the stream; 0: none
};

struct StreamInfo {
  int device = 0;
  uint32_t context_id = 0;
  uint32_t stream_id = 0;
  uint32_t priority = 0;
  bool non_blocking = false;
  bool null_stream = false;
  uint32_t correlation = 0;
};

// What CUPTI has records of when a graph is launched.
struct GraphRules {
  bool late_nodes = true;         // of nodes of graphs that were instantiated before it was on
  bool late_graph_times = false;  // of such a graph as a whole
  bool late_graph_crash = false;  // its launch ends the process where records as a whole are wanted
  bool late_transfers_as_kernels = false;  // of their copies and sets as kernels
  bool nodes = true;                       // of any graph, where they have no records as a whole
  bool bodies = true;                      // of what conditional nodes contain
  bool first_iteration_only = false;       // of that, only of the first time round
};

// What libcupti gives the core. `api_*` run on the calling thread with no lock held; the others
// may run under the core's lock and must not call back into it.
class CuptiSink {
 public:
  // Bit k: records of CUpti_ActivityKind k are wanted now.
  virtual uint64_t wanted() const = 0;
  virtual GraphRules graph_rules() const = 0;
  virtual void api_enter(ApiEvent& event) = 0;
  virtual void api_exit(ApiEvent& event) = 0;
  virtual void gpu_op(const GpuOpInfo& op) = 0;
  virtual void sync(const SyncInfo& info) = 0;
  virtual void event_record(const EventRecordInfo& info) = 0;
  virtual void memory(const MemoryInfo& info) = 0;
  // On the calling thread, inside the API call, with no lock held.
  virtual void graph_changed(const GraphEvent& event) = 0;
  virtual void stream_created(const StreamInfo& info) = 0;
  virtual void context_created(int device, uint32_t context_id) = 0;
  virtual void context_reset(uint32_t context_id) = 0;  // its work is over

 protected:
  ~CuptiSink() = default;
};

// Decides when work ends that depends on other processes (a collective).
class Gate {
 public:
  virtual ~Gate() = default;
  // Called under the core's lock, again and again, once all that the work waits for is known.
  // `*start` is the earliest start, which the gate may delay. Returns true and sets `*end` when the
  // end is known. Must not call into the core.
  virtual bool resolve(uint64_t* start, uint64_t* end) = 0;
};

// Makes a fresh gate for each time the work runs (more than once when captured in a graph).
class GateFactory {
 public:
  virtual ~GateFactory() = default;
  virtual std::shared_ptr<Gate> make() = 0;
};

// wait: of a stream for a value in memory (cuStreamBatchMemOp). CUPTI has no record of it.
enum class ExternalKind : uint8_t { kernel, copy, copies, wait };

struct ExternalLaunch {
  ExternalKind kind = ExternalKind::kernel;
  const char* kernel_name = "";  // copied
  cudaStream_t stream = nullptr;
  int device = 0;
  uint32_t grid = 1;
  uint32_t block = 512;
  bool via_driver = true;             // as cuLaunchKernelEx, else as cudaLaunchKernelExC
  std::shared_ptr<GateFactory> gate;  // of a kernel or a wait
  uint64_t bytes = 0;                 // of a copy, or of copies in one batch; on the device:
  uint64_t count = 1;                 // so many
  uint64_t duration = 0;              // ns, of all
};

struct DeviceModel {
  const char* name = "";
  uint64_t memory_bytes = 0;
  uint32_t multiprocessors = 0;
  uint32_t clock_khz = 0;
};

// What the core gives libcupti and libnccl. Thread safe.
class SimCore {
 public:
  // Starts the driver, or waits while another thread does: what CUPTI's functions have to do (a
  // subscription makes "early CUDA initialization", pytorch/pytorch #171804).
  virtual void start() = 0;
  virtual bool is_started() const = 0;
  virtual void attach_cupti(CuptiSink* sink) = 0;
  virtual int device_count() = 0;
  virtual DeviceModel device_model(int device) = 0;
  virtual int current_device() = 0;
  virtual uint32_t stream_id(cudaStream_t stream, bool per_thread_default) = 0;
  virtual std::vector<StreamInfo> live_streams() = 0;        // of devices with a context
  virtual uint32_t graph_exec_id(cudaGraphExec_t exec) = 0;  // 0: there is none
  virtual CaptureInfo capture_info(cudaStream_t stream, bool per_thread_default) = 0;
  virtual uint64_t seed() = 0;
  // Resolves what can be resolved; returns how many pieces of work still wait.
  virtual size_t progress() = 0;
  virtual cudaError_t launch_external(const ExternalLaunch& launch) = 0;
  virtual cudaError_t allocate(void** out, size_t bytes) = 0;
  virtual cudaError_t release(void* pointer) = 0;
  // Whether all of it is memory that this runtime gave.
  virtual bool is_known(const void* pointer, size_t bytes) = 0;
  virtual bool truth_enabled() = 0;
  virtual void truth_line(std::string_view json) = 0;  // one JSON object, no newline

 protected:
  ~SimCore() = default;
};

}  // namespace gpuprof::simcuda

extern "C" {
// The seam's only entry. Found by dlsym in libcuda.so.1; one object per process.
gpuprof::simcuda::SimCore* simcuda_core(void);
// Exported by libcupti.so.13; the core calls it when that library was there before it.
void simcuda_cupti_attach_to(gpuprof::simcuda::SimCore* core);
}
