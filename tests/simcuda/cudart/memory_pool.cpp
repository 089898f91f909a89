// SPDX-License-Identifier: Apache-2.0
// Stream-ordered allocation. Blocks are given at once; only their accounting belongs to a pool.
#include <cupti.h>

#include <map>

#include "tests/simcuda/core/clock.h"
#include "tests/simcuda/cudart/entry_points.h"

namespace gpuprof::simcuda {
namespace {

struct Pool {
  int device = 0;
  uint64_t release_threshold = 0;
};

// Default pools, one per device, and those that programs create. Never freed.
class Pools {
 public:
  static Pools& instance() {
    static Pools& pools = *new Pools();
    return pools;
  }
  Pool* default_pool(int device) {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto& slot = defaults_[device];
    if (slot == nullptr) slot = add(device);
    return slot;
  }
  Pool* create(int device) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return add(device);
  }
  Pool* find(cudaMemPool_t handle) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto it = pools_.find(handle);
    return it == pools_.end() ? nullptr : it->second.get();
  }
  bool destroy(cudaMemPool_t handle) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return pools_.erase(handle) != 0;
  }

 private:
  Pool* add(int device) {
    auto pool = std::make_unique<Pool>();
    pool->device = device;
    Pool* raw = pool.get();
    pools_[raw] = std::move(pool);
    return raw;
  }
  std::mutex mutex_;
  std::map<const void*, std::unique_ptr<Pool>> pools_;
  std::map<int, Pool*> defaults_;
};

void report(ApiCall& call, const Allocation& memory, const Stream& stream, const Pool* pool,
            bool allocation) {
  Core& core = Core::instance();
  MemoryInfo info;
  info.allocation = allocation;
  info.async = true;
  info.kind = memory.kind;
  info.address = memory.address;
  info.bytes = memory.bytes;
  info.time = now_ns();
  info.device = memory.device;
  info.context_id = stream.context_id;
  info.stream_id = stream.id;
  info.correlation = call.correlation();
  info.pool_address = reinterpret_cast<uint64_t>(pool);
  info.pool_used = core.memory().pool_used_bytes(memory.device);
  core.report_memory(info);
}

// In a capture the call makes a node. The address is given at once, as with the real runtime.
Graph::Node memory_node(NodeType type) {
  Graph::Node node;
  node.type = type;
  return node;
}

cudaError_t allocate(const StreamApi& which, void** out, size_t bytes, cudaMemPool_t pool_handle,
                     bool default_pool, cudaStream_t stream_handle) {
  return run_api(which.api, [&](ApiCall& call) {
    call.details.bytes = static_cast<int64_t>(bytes);
    if (out == nullptr) return cudaErrorInvalidValue;
    Core& core = Core::instance();
    const Core::Lock held = core.lock();
    const auto stream = core.stream(stream_handle, which.per_thread);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (const cudaError_t refused = core.refuse_use(*stream)) return refused;
    call.details.device = stream->device;
    call.details.stream = stream->id;
    const Pool* pool = default_pool ? Pools::instance().default_pool(stream->device)
                                    : Pools::instance().find(pool_handle);
    if (pool == nullptr) return cudaErrorInvalidValue;
    *out = nullptr;
    if (bytes == 0) return cudaSuccess;
    const auto memory = core.memory().allocate(MemoryKind::kDevice, bytes, pool->device, true);
    if (!memory) return cudaErrorMemoryAllocation;
    *out = reinterpret_cast<void*>(memory->address);
    call.details.pointer = *out;
    if (stream->capture != nullptr) {
      core.add_node(*stream, memory_node(NodeType::kMemAlloc));
    } else {
      report(call, *memory, *stream, pool, true);
    }
    return cudaSuccess;
  });
}

cudaError_t release(const StreamApi& which, void* pointer, cudaStream_t stream_handle) {
  return run_api(which.api, [&](ApiCall& call) {
    call.details.pointer = pointer;
    Core& core = Core::instance();
    const Core::Lock held = core.lock();
    const auto stream = core.stream(stream_handle, which.per_thread);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (const cudaError_t refused = core.refuse_use(*stream)) return refused;
    call.details.device = stream->device;
    call.details.stream = stream->id;
    if (pointer == nullptr) return cudaSuccess;
    const auto known = core.memory().find(pointer);
    const bool starts_here = known && known->address == reinterpret_cast<uintptr_t>(pointer);
    if (!starts_here || known->kind != MemoryKind::kDevice) return cudaErrorInvalidValue;
    if (stream->capture != nullptr) {  // the memory is the graph's
      core.add_node(*stream, memory_node(NodeType::kMemFree));
      return cudaSuccess;
    }
    core.memory().release(pointer);
    call.details.bytes = static_cast<int64_t>(known->bytes);
    const Pool* pool = known->pooled ? Pools::instance().default_pool(known->device) : nullptr;
    report(call, *known, *stream, pool, false);
    return cudaSuccess;
  });
}

cudaError_t pool_attribute(cudaMemPool_t handle, cudaMemPoolAttr attribute, void* value, bool set) {
  Pool* pool = Pools::instance().find(handle);
  if (pool == nullptr || value == nullptr) return cudaErrorInvalidValue;
  if (attribute == cudaMemPoolAttrReleaseThreshold) {
    auto* number = static_cast<uint64_t*>(value);
    (set ? pool->release_threshold : *number) = set ? *number : pool->release_threshold;
    return cudaSuccess;
  }
  if (set) return cudaSuccess;
  const bool usage = attribute >= cudaMemPoolAttrReservedMemCurrent;
  if (usage) {
    *static_cast<uint64_t*>(value) = Core::instance().memory().pool_used_bytes(pool->device);
  } else {
    *static_cast<int*>(value) = 1;  // the reuse switches
  }
  return cudaSuccess;
}

constexpr StreamApi kMalloc{{"cudaMallocAsync", CUPTI_RUNTIME_TRACE_CBID_cudaMallocAsync_v11020},
                            false};
constexpr StreamApi kMallocPtsz{
    {"cudaMallocAsync_ptsz", CUPTI_RUNTIME_TRACE_CBID_cudaMallocAsync_ptsz_v11020}, true};
constexpr StreamApi kFromPool{
    {"cudaMallocFromPoolAsync", CUPTI_RUNTIME_TRACE_CBID_cudaMallocFromPoolAsync_v11020}, false};
constexpr StreamApi kFromPoolPtsz{
    {"cudaMallocFromPoolAsync_ptsz", CUPTI_RUNTIME_TRACE_CBID_cudaMallocFromPoolAsync_ptsz_v11020},
    true};
constexpr StreamApi kFree{{"cudaFreeAsync", CUPTI_RUNTIME_TRACE_CBID_cudaFreeAsync_v11020}, false};
constexpr StreamApi kFreePtsz{
    {"cudaFreeAsync_ptsz", CUPTI_RUNTIME_TRACE_CBID_cudaFreeAsync_ptsz_v11020}, true};
constexpr ApiInfo kDefaultPool{"cudaDeviceGetDefaultMemPool",
                               CUPTI_RUNTIME_TRACE_CBID_cudaDeviceGetDefaultMemPool_v11020, true};
constexpr ApiInfo kCurrentPool{"cudaDeviceGetMemPool",
                               CUPTI_RUNTIME_TRACE_CBID_cudaDeviceGetMemPool_v11020, true};
constexpr ApiInfo kCreate{"cudaMemPoolCreate", CUPTI_RUNTIME_TRACE_CBID_cudaMemPoolCreate_v11020};
constexpr ApiInfo kDestroy{"cudaMemPoolDestroy",
                           CUPTI_RUNTIME_TRACE_CBID_cudaMemPoolDestroy_v11020};
constexpr ApiInfo kSetAccess{"cudaMemPoolSetAccess",
                             CUPTI_RUNTIME_TRACE_CBID_cudaMemPoolSetAccess_v11020, true};
constexpr ApiInfo kTrim{"cudaMemPoolTrimTo", CUPTI_RUNTIME_TRACE_CBID_cudaMemPoolTrimTo_v11020};
constexpr ApiInfo kSetAttribute{"cudaMemPoolSetAttribute",
                                CUPTI_RUNTIME_TRACE_CBID_cudaMemPoolSetAttribute_v11020};
constexpr ApiInfo kGetAttribute{"cudaMemPoolGetAttribute",
                                CUPTI_RUNTIME_TRACE_CBID_cudaMemPoolGetAttribute_v11020, true};

cudaError_t default_pool_of(const ApiInfo& which, cudaMemPool_t* out, int device) {
  return run_api(which, [&](ApiCall&) {
    if (out == nullptr) return cudaErrorInvalidValue;
    if (!valid_device(device)) return cudaErrorInvalidDevice;
    *out = reinterpret_cast<cudaMemPool_t>(Pools::instance().default_pool(device));
    return cudaSuccess;
  });
}

}  // namespace
}  // namespace gpuprof::simcuda

using namespace gpuprof::simcuda;

extern "C" {

cudaError_t cudaMallocAsync(void** out, size_t bytes, cudaStream_t stream) {
  return allocate(kMalloc, out, bytes, nullptr, true, stream);
}
cudaError_t cudaMallocAsync_ptsz(void** out, size_t bytes, cudaStream_t stream) {
  return allocate(kMallocPtsz, out, bytes, nullptr, true, stream);
}
cudaError_t cudaMallocFromPoolAsync(void** out, size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream) {
  return allocate(kFromPool, out, bytes, pool, false, stream);
}
cudaError_t cudaMallocFromPoolAsync_ptsz(void** out, size_t bytes, cudaMemPool_t pool,
                                         cudaStream_t stream) {
  return allocate(kFromPoolPtsz, out, bytes, pool, false, stream);
}
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  return release(kFree, pointer, stream);
}
cudaError_t cudaFreeAsync_ptsz(void* pointer, cudaStream_t stream) {
  return release(kFreePtsz, pointer, stream);
}
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* out, int device) {
  return default_pool_of(kDefaultPool, out, device);
}
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* out, int device) {
  return default_pool_of(kCurrentPool, out, device);
}
cudaError_t cudaMemPoolCreate(cudaMemPool_t* out, const cudaMemPoolProps* properties) {
  return run_api(kCreate, [&](ApiCall&) {
    if (out == nullptr || properties == nullptr) return cudaErrorInvalidValue;
    if (!valid_device(properties->location.id)) return cudaErrorInvalidDevice;
    *out = reinterpret_cast<cudaMemPool_t>(Pools::instance().create(properties->location.id));
    return cudaSuccess;
  });
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  return run_api(kDestroy, [&](ApiCall&) {
    return Pools::instance().destroy(pool) ? cudaSuccess : cudaErrorInvalidValue;
  });
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t) {
  return run_api(kTrim, [&](ApiCall&) {
    return Pools::instance().find(pool) != nullptr ? cudaSuccess : cudaErrorInvalidValue;
  });
}
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc*, size_t) {
  return run_api(kSetAccess, [&](ApiCall&) {
    return Pools::instance().find(pool) ? cudaSuccess : cudaErrorInvalidValue;
  });
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return run_api(kSetAttribute,
                 [&](ApiCall&) { return pool_attribute(pool, attribute, value, true); });
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return run_api(kGetAttribute,
                 [&](ApiCall&) { return pool_attribute(pool, attribute, value, false); });
}

}  // extern "C"
