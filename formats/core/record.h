// SPDX-License-Identifier: Apache-2.0
// The fixed-size record that hooks and CUPTI callbacks write into per-thread buffers, as it
// lies in memory and in the ring file. Trivially copyable, no pointers into anything but the
// traced process. Times are raw clock ticks (see ClockInfo in ring_file.h). Names are offsets
// into the ring's string table (StringId): a killed process's ring can be read without that
// process.
#pragma once

#include <cstdint>
#include <type_traits>

namespace gpuprof {

// Offset of an interned string in the string table; 0 is the empty string.
using StringId = uint32_t;
// Index of a row of preload's table of intercepted functions; kNoApi for what is not in the table.
using ApiId = uint16_t;
inline constexpr ApiId kNoApi = 0xffff;

// THE table of record kinds: one row adds one. What a record of a kind holds besides its times is
// its payload, a member of Record's union. Numbers are part of the dump format: never reuse one.
// Kinds below 32 are of the host ([begin, end] is the call): hooks make them, and CUPTI's callbacks
// for calls that no hook saw. The others are of the device ([begin, end] is the work on the GPU):
// CUPTI's activity records.
//
//   RECORDED(name, number, payload)   in the ring and in dumps
//   RING(name, number, payload)       in the ring only
//   OUTSIDE(name, number)             only in traces of other tools; EventExtra (trace.h) says what
//                                     these hold
#define GPUPROF_KINDS(RECORDED, RING, OUTSIDE)                                                    \
  RECORDED(call, 1, call)     /* a traced call with no arguments worth keeping */                 \
  RECORDED(launch, 2, launch) /* of a kernel or graph */                                          \
  RECORDED(copy, 3, copy)                                                                         \
  RECORDED(set, 4, set)                                                                           \
  RECORDED(alloc, 5, memory)                                                                      \
  RECORDED(dealloc, 6, memory) /* bytes 0 where the call does not say */                          \
  RECORDED(sync, 7, sync)                                                                         \
  RECORDED(event, 8, sync)  /* create, record, destroy */                                         \
  RECORDED(stream, 9, sync) /* create, destroy, wait */                                           \
  RECORDED(collective, 10, collective)                                                            \
  RECORDED(nvtx_range, 11, nvtx) /* push/pop or start/end of one thread or process */             \
  RECORDED(nvtx_mark, 12, nvtx)  /* begin == end */                                               \
  /* What a framework says it did, on a host thread. */                                           \
  RECORDED(op, 13, framework)         /* an operator (aten::mm; Kineto's cpu_op) */               \
  RECORDED(annotation, 14, framework) /* a range the program named (record_function) */           \
  RECORDED(module, 15, framework)     /* a call of an nn.Module */                                \
  OUTSIDE(python_function, 16)        /* a call of a Python function */                           \
  RECORDED(tensor, 17, tensor)        /* begin == end; an allocator gave or took memory */        \
  OUTSIDE(instant, 18)                /* begin == end; any other moment */                        \
  OUTSIDE(other, 19)                  /* a range of a category that has no kind of its own */     \
  /* A thread's Python stack, seen by the sampling thread; begin == end. A dump has it in that */ \
  /* thread's lane. */                                                                            \
  RECORDED(sample, 20, sample)                                                                    \
  /* Host memory that the program's allocator, or the kernel, gave or took back: one of many */   \
  /* (collector/sources/heap.h); begin == end. */                                                 \
  RECORDED(heap, 21, heap)                                                                        \
  /* Right before the record of the call whose stack it is, with the same times. */               \
  RING(stack, 31, stack)                                                                          \
  RECORDED(gpu_kernel, 32, gpu_kernel)                                                            \
  RECORDED(gpu_copy, 33, gpu_copy)                                                                \
  RECORDED(gpu_set, 34, gpu_copy)                                                                 \
  RECORDED(gpu_sync, 35, gpu_sync) /* CUPTI's synchronization record (host waited) */             \
  RECORDED(gpu_event, 36, gpu_sync)                                                               \
  RECORDED(gpu_memory, 37, gpu_memory) /* CUPTI's memory record (allocation or release) */        \
  RECORDED(overhead, 38, overhead)     /* CUPTI's own work */                                     \
  RECORDED(gpu_graph, 39, gpu_kernel)  /* a graph launch as a whole (no node records) */          \
  OUTSIDE(gpu_annotation, 40)          /* what a range of the program covers on a stream */

enum class Kind : uint8_t {
  none = 0,
#define GPUPROF_ENUMERATOR(name, number, ...) name = number,
  GPUPROF_KINDS(GPUPROF_ENUMERATOR, GPUPROF_ENUMERATOR, GPUPROF_ENUMERATOR)
#undef GPUPROF_ENUMERATOR
};

struct Dim3 {
  uint32_t x, y, z;
};

enum RecordFlags : uint8_t {
  kFlagFromCallback = 1,  // a call no hook saw (static cudart), reported by CUPTI's callback
  kFlagNoTime = 2,     // CUPTI gave no usable time stamp; begin/end are those of the API call or 0
  kFlagDriver = 4,     // the call is of the driver API, not the runtime
  kFlagOpenEnd = 8,    // the range was still open when the window ended
  kFlagNamed = 16,     // launch: `function` is the StringId of the kernel's name
  kFlagCaptured = 32,  // the call was captured into a CUDA graph: it started no work
  kFlagFromNvtx = 64,  // a call of NCCL's no hook saw, told by its NVTX range: without result
                       // and stream; a collective's `count` is bytes
};

// ---- payloads: what a record of one kind holds besides times; 40 bytes at most ----

struct CallPayload {
  uint64_t handle;  // whatever handle the call is about, or 0
  StringId name;    // function name when api == kNoApi
  int32_t result;
};

// Laid out as the arguments come in registers (x and y of a dim3 share one): launches are the
// hottest records, and every shift to pack them counts.
struct LaunchPayload {
  uint64_t function;  // host function pointer, cudaKernel_t or cudaGraphExec_t; its name is in the
                      // ring's function names. With kFlagNamed: the kernel name's StringId
  uint64_t stream;    // handle as the program passed it
  uint32_t grid_x, grid_y;
  uint32_t block_x, block_y;
  uint16_t grid_z, block_z;
  uint32_t shared_bytes : 20;
  uint32_t result : 12;  // cudaError_t or CUresult
};

struct CopyPayload {
  uint64_t destination, source, bytes, stream;
  uint8_t direction;  // cudaMemcpyKind
  uint8_t reserved;
  int16_t result;
  StringId name;  // function name when api == kNoApi
};

struct SetPayload {
  uint64_t address, bytes, stream;
  uint32_t value;
  int16_t result;
  uint16_t reserved;
  StringId name;
  uint32_t reserved2;
};

struct MemoryPayload {
  uint64_t address, bytes, stream;
  uint64_t pool;
  int16_t result;
  uint16_t reserved;
  StringId name;
};

struct SyncPayload {
  uint64_t stream, event;
  int32_t result;
  uint32_t flags;
  StringId name;
  uint32_t reserved;
  uint64_t reserved2;
};

// NCCL's enum values as the program gave them. With kFlagFromNvtx `communicator` is NCCL's own hash
// of it, the same on all its ranks; where that is 0, unknown, nothing is known of `sequence`
// either.
struct CollectivePayload {
  static constexpr uint64_t kUnknownCount = ~uint64_t{0};

  uint64_t communicator;
  uint64_t count;  // elements, as passed (per rank for AllGather, ReduceScatter, AlltoAll...)
  uint64_t stream;
  uint32_t sequence;    // index of this collective on its communicator, from 0
  int32_t peer;         // root or peer rank; -1: none
  uint16_t rank_count;  // 0: unknown
  uint16_t rank;
  uint8_t data_type;  // ncclDataType_t; 0xff: none
  uint8_t operation;  // ncclRedOp_t; 0xff: none
  int16_t result;
};

struct NvtxPayload {
  StringId message;
  StringId domain;  // 0: the default domain
  uint32_t category, color;
  uint64_t payload;
  uint64_t range_id;          // start/end ranges; 0 for push/pop
  uint64_t depth : 8;         // push/pop nesting depth, from 0
  uint64_t payload_type : 8;  // nvtxPayloadType_t; 0: there is no payload
  uint64_t started_on : 24;   // start/end: Linux tid of the thread, where it is not the record's;
  uint64_t ended_on : 24;     // of the one that ended it, if any has; else both 0
};

// op, annotation, module.
struct FrameworkPayload {
  StringId name;
  StringId input_dims, input_types;  // op: JSON arrays; 0: not recorded
  uint32_t backward;                 // op: 1 for a node of the backward pass
  uint64_t sequence;  // op: sequence number + 1, 0: none; module: number of the object, from 1 on
  uint64_t reserved[2];
};

// A framework's allocator gave memory (begin == end), or took it back.
struct TensorPayload {
  uint64_t address, bytes;
  uint64_t allocated, kept;  // by the allocator for this device, after the change
  uint16_t device_type;      // 0 CPU, 1 CUDA
  uint16_t device;           // 0xffff: the type has only one
  uint32_t released;         // 1: taken back
};

struct StackPayload {
  StringId stack;  // in the ring's stack table
  uint32_t ticks;  // that it took to take it
};

struct SamplePayload {
  StringId stack;   // in the ring's stack table
  uint32_t thread;  // Linux tid of the thread
};

// A sampled allocation, or the release of one that was.
struct HeapPayload {
  uint64_t address, bytes;
  uint64_t interval;  // bytes between two samples, on average
  StringId name;      // the function: malloc, mmap, ...
  uint32_t released;  // 1: taken back
};

struct GpuKernelPayload {
  StringId name;    // mangled, as CUPTI gives it
  uint32_t shape;   // id in the ring's launch-shape table; 0: none
  uint32_t stream;  // CUPTI stream id
  uint16_t device;
  uint16_t context;
  uint64_t graph_node;  // 0: not from a graph
  uint32_t graph;
  uint16_t channel;
  uint16_t channel_type;
  uint64_t reserved;
};

struct GpuCopyPayload {
  uint64_t bytes;
  uint32_t stream;
  uint16_t device, context;
  uint8_t direction;                      // CUpti_ActivityMemcpyKind; 0 for sets
  uint8_t source_kind, destination_kind;  // CUpti_ActivityMemoryKind
  uint8_t flags;                          // CUpti_ActivityFlag
  uint32_t value;                         // sets: the byte value
  uint64_t graph_node;
  uint32_t graph;
  uint16_t peer_source, peer_destination;  // device ids of a peer copy, else 0xffff
};

struct GpuSyncPayload {
  uint32_t type;    // CUpti_ActivitySynchronizationType
  uint32_t stream;  // CUPTI stream id; 0xffffffff: none
  uint16_t device, context;
  uint32_t event_id;
  uint64_t event_sync_id;
  uint64_t device_time;  // ticks, CUDA_EVENT records; 0: not given
  uint64_t reserved;
};

struct GpuMemoryPayload {
  uint64_t address, bytes;
  uint32_t operation;  // CUpti_ActivityMemoryOperationType
  uint32_t memory_kind;
  uint16_t device, context;
  uint32_t stream;
  uint64_t pool;
};

struct OverheadPayload {
  uint32_t type;  // CUpti_ActivityOverheadKind
  uint32_t object_kind;
  uint64_t object;  // thread or device id
  uint64_t reserved[3];
};

struct Record {
  uint64_t begin;        // ticks
  uint64_t end;          // ticks, >= begin
  uint32_t correlation;  // CUPTI's correlation id; 0: none
  ApiId api;             // kNoApi: see `name` in the payload
  Kind kind;
  uint8_t flags;  // RecordFlags
  union {
    CallPayload call;
    LaunchPayload launch;
    CopyPayload copy;
    SetPayload set;
    MemoryPayload memory;
    SyncPayload sync;
    CollectivePayload collective;
    NvtxPayload nvtx;
    FrameworkPayload framework;
    TensorPayload tensor;
    StackPayload stack;
    SamplePayload sample;
    HeapPayload heap;
    GpuKernelPayload gpu_kernel;
    GpuCopyPayload gpu_copy;
    GpuSyncPayload gpu_sync;
    GpuMemoryPayload gpu_memory;
    OverheadPayload overhead;
    uint64_t words[5];
  };
};

struct NoPayload {};

// Calls `function` with the payload of a record, or with NoPayload. An overload for each payload
// makes a forgotten one a compile error.
template <typename Function>
auto with_payload(const Record& record, Function&& function) {
  switch (record.kind) {
#define GPUPROF_WITHOUT(name, number) case Kind::name:
#define GPUPROF_WITH(name, number, payload) \
  GPUPROF_WITHOUT(name, number) return function(record.payload);
    GPUPROF_KINDS(GPUPROF_WITH, GPUPROF_WITH, GPUPROF_WITHOUT)
#undef GPUPROF_WITH
#undef GPUPROF_WITHOUT
    case Kind::none: break;
  }
  return function(NoPayload{});
}

static_assert(sizeof(Record) == 64, "one cache line: the hot path writes it once");
static_assert(std::is_trivially_copyable_v<Record>);

// A call of CUDA's or NCCL's, as opposed to what programs and frameworks say of themselves.
constexpr bool is_call_kind(Kind kind) { return kind >= Kind::call && kind <= Kind::collective; }
constexpr bool is_gpu_kind(Kind kind) { return static_cast<uint8_t>(kind) >= 32; }
// What occupies a stream.
constexpr bool is_stream_work(Kind kind) {
  return kind == Kind::gpu_kernel || kind == Kind::gpu_copy || kind == Kind::gpu_set ||
         kind == Kind::gpu_graph;
}

// What one kernel launch looks like besides its name; few distinct ones in a program, so interned.
struct LaunchShape {
  Dim3 grid;
  Dim3 block;
  uint32_t static_shared_bytes;
  uint32_t dynamic_shared_bytes;
  uint32_t registers_per_thread;
  uint32_t cluster_x, cluster_y, cluster_z;
  uint32_t local_bytes_per_thread;
  uint32_t reserved;
};
static_assert(sizeof(LaunchShape) == 56);

}  // namespace gpuprof
