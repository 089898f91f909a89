// SPDX-License-Identifier: Apache-2.0
#include "tests/simcuda/cudart/memcpy.h"

#include <algorithm>
#include <cstring>

#include "tests/simcuda/core/settings.h"

namespace gpuprof::simcuda {
namespace {

constexpr uint64_t kCopySetupNs = 1500;
// Pageable copies to the device return when they are staged (CUDA runtime API, "API
// synchronization behavior"): those up to this size at once, others so long before they are over
// (6 to 11 us on an H200, of copies of 268 MB in 29 to 33 ms).
constexpr size_t kStagedBytes = 64 * 1024;
constexpr uint64_t kStagedEarlyNs = 8000;

struct Side {
  MemoryKind kind = MemoryKind::kPageable;
  int device = 0;
  bool on_device() const { return kind == MemoryKind::kDevice || kind == MemoryKind::kManaged; }
};

Side classify(const void* pointer) {
  const auto known = Core::instance().memory().find(pointer);
  if (!known) return Side{};
  return Side{known->kind, known->device};
}

CopyKind direction(const Side& dst, const Side& src) {
  if (dst.on_device() && src.on_device()) {
    return dst.device == src.device ? CopyKind::kDtoD : CopyKind::kPtoP;
  }
  if (dst.on_device()) return CopyKind::kHtoD;
  return src.on_device() ? CopyKind::kDtoH : CopyKind::kHtoH;
}

// Managed memory counts as either side; what is known to be device memory must be used as such.
bool kind_allowed(cudaMemcpyKind kind, const Side& dst, const Side& src) {
  const auto host_ok = [](const Side& s) { return s.kind != MemoryKind::kDevice; };
  switch (kind) {
    case cudaMemcpyHostToDevice: return dst.on_device() && host_ok(src);
    case cudaMemcpyDeviceToHost: return src.on_device() && host_ok(dst);
    case cudaMemcpyDeviceToDevice: return dst.on_device() && src.on_device();
    case cudaMemcpyHostToHost: return host_ok(dst) && host_ok(src);
    case cudaMemcpyDefault: return true;
  }
  return false;
}

CopyKind explicit_direction(cudaMemcpyKind kind, CopyKind inferred) {
  if (kind == cudaMemcpyHostToDevice) return CopyKind::kHtoD;
  if (kind == cudaMemcpyDeviceToHost) return CopyKind::kDtoH;
  if (kind == cudaMemcpyHostToHost) return CopyKind::kHtoH;
  return inferred;
}

double bandwidth(CopyKind direction, bool pageable) {
  const Settings& s = settings();
  if (direction == CopyKind::kDtoD) return s.device_gb_s;
  if (direction == CopyKind::kPtoP) return s.peer_gb_s;
  return pageable ? s.pageable_gb_s : s.pinned_gb_s;
}

void move_bytes(const CopyRequest& r) {
  size_t left = settings().copy_limit_bytes;
  for (size_t row = 0; row < r.height && left > 0; ++row) {
    const size_t n = std::min(r.width, left);
    std::memmove(static_cast<char*>(r.dst) + row * r.dst_pitch,
                 static_cast<const char*>(r.src) + row * r.src_pitch, n);
    left -= n;
  }
}

// Whether the host waits until the copy is over. "For transfers from any host memory to any host
// memory, the function is fully synchronous", in both its forms (CUDA runtime API, "API
// synchronization behavior").
bool host_waits(const CopyRequest& r, CopyKind direction, bool pageable, size_t bytes) {
  const bool touches_host = direction != CopyKind::kDtoD && direction != CopyKind::kPtoP;
  if (!touches_host) return false;
  if (!r.async || direction == CopyKind::kHtoH) return true;
  return pageable && !(direction == CopyKind::kHtoD && bytes <= kStagedBytes);
}

Work describe(const CopyRequest& r, const Side& dst, const Side& src, CopyKind direction) {
  const bool pageable = dst.kind == MemoryKind::kPageable || src.kind == MemoryKind::kPageable;
  Work work;
  work.info.kind = GpuOpKind::kMemcpy;
  work.info.copy_kind = direction;
  work.info.src_kind = src.kind;
  work.info.dst_kind = dst.kind;
  work.info.src_device = src.device;
  work.info.dst_device = dst.device;
  work.info.async = r.async;
  work.info.bytes = static_cast<uint64_t>(r.width) * r.height;
  work.duration = kCopySetupNs + static_cast<uint64_t>(static_cast<double>(work.info.bytes) /
                                                       bandwidth(direction, pageable));
  if (direction == CopyKind::kHtoD) work.engine = EngineKind::kHtoD;
  if (direction == CopyKind::kDtoH) work.engine = EngineKind::kDtoH;
  return work;
}

}  // namespace

cudaError_t copy_memory(ApiCall& call, const CopyRequest& r, bool per_thread) {
  const size_t bytes = r.width * r.height;
  call.details.device = thread_state().device;
  call.details.bytes = static_cast<int64_t>(bytes);
  call.details.pointer = r.dst;
  if (bytes == 0) return cudaSuccess;
  if (r.dst == nullptr || r.src == nullptr) return cudaErrorInvalidValue;
  if (r.height > 1 && (r.width > r.dst_pitch || r.width > r.src_pitch)) {
    return cudaErrorInvalidPitchValue;
  }
  const Side dst = classify(r.dst);
  const Side src = classify(r.src);
  if (!r.symbol && !kind_allowed(r.kind, dst, src)) return cudaErrorInvalidValue;
  const CopyKind way = explicit_direction(r.kind, r.peer ? CopyKind::kPtoP : direction(dst, src));
  Work work = describe(r, dst, src, way);
  call.details.copy_kind = way;
  const bool pageable =
      work.info.src_kind == MemoryKind::kPageable || work.info.dst_kind == MemoryKind::kPageable;

  Core& core = Core::instance();
  Core::Lock held = core.lock();
  const auto stream = core.stream(r.stream, per_thread);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  if (const cudaError_t refused = core.refuse_use(*stream)) return refused;
  call.details.stream = stream->id;
  const uint64_t duration = work.duration;
  const OpPtr op = core.submit(*stream, std::move(work), call.correlation());
  if (op != nullptr && !op->resolved && src.on_device()) {
    op->effect = [r] { move_bytes(r); };  // behind a collective, whose data is yet to come
  } else {
    move_bytes(r);
  }
  call.details.waited = op != nullptr && host_waits(r, way, pageable, bytes);
  if (!call.details.waited) return cudaSuccess;
  const bool staged = pageable && way == CopyKind::kHtoD;
  core.block_on(std::move(held), {op}, staged ? std::min(kStagedEarlyNs, duration / 2) : 0);
  return cudaSuccess;
}

cudaError_t copy_batch(ApiCall& call, const std::vector<CopyRequest>& copies, bool per_thread) {
  std::vector<Work> works;
  size_t bytes = 0;
  for (const CopyRequest& r : copies) {
    if (r.dst == nullptr || r.src == nullptr || r.width * r.height == 0)
      return cudaErrorInvalidValue;
    const Side dst = classify(r.dst), src = classify(r.src);
    Work work = describe(r, dst, src, direction(dst, src));
    bytes += work.info.bytes;
    if (!works.empty() && works.back().info.copy_kind == work.info.copy_kind) {
      works.back().info.bytes += work.info.bytes;
      works.back().info.copy_count += 1;
      works.back().duration += work.duration;
    } else {
      works.push_back(std::move(work));
    }
  }
  call.details.device = thread_state().device;
  call.details.bytes = static_cast<int64_t>(bytes);
  if (copies.empty()) return cudaErrorInvalidValue;
  call.details.pointer = copies[0].dst;
  Core& core = Core::instance();
  const Core::Lock held = core.lock();
  const auto stream = core.stream(copies[0].stream, per_thread);
  if (stream == nullptr || stream->legacy) return cudaErrorInvalidValue;
  if (const cudaError_t refused = core.refuse_use(*stream)) return refused;
  call.details.stream = stream->id;
  for (Work& work : works) core.submit(*stream, std::move(work), call.correlation());
  for (const CopyRequest& r : copies) move_bytes(r);
  return cudaSuccess;
}

}  // namespace gpuprof::simcuda
