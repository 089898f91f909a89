// SPDX-License-Identifier: Apache-2.0
#include "formats/views/event_category.h"

namespace gpuprof {
namespace {

const char* category_of_kind(const Shape& shape) {
  switch (shape.kind) {
    case Kind::gpu_graph:
    case Kind::gpu_kernel: return "kernel";
    case Kind::gpu_copy: return "gpu_memcpy";
    case Kind::gpu_set: return "gpu_memset";
    case Kind::gpu_sync: return "cuda_sync";
    case Kind::gpu_event: return "cuda_event";
    case Kind::gpu_memory: return "gpu_memory";
    case Kind::overhead: return "overhead";
    case Kind::nvtx_range:
    case Kind::nvtx_mark: return "user_annotation";
    case Kind::collective: return "nccl";
    case Kind::op: return "cpu_op";
    case Kind::annotation: return "user_annotation";
    case Kind::module:
    case Kind::python_function: return "python_function";
    case Kind::tensor:
    case Kind::instant: return "cpu_instant_event";
    case Kind::other: return "other";
    case Kind::gpu_annotation: return "gpu_user_annotation";
    case Kind::none:
    case Kind::call:
    case Kind::launch:
    case Kind::copy:
    case Kind::set:
    case Kind::alloc:
    case Kind::dealloc:
    case Kind::sync:
    case Kind::event:
    case Kind::stream:
    case Kind::sample:
    case Kind::heap:
    case Kind::stack: break;
  }
  if (shape.domain == ApiDomain::nccl) return "nccl";
  const bool driver = shape.domain == ApiDomain::driver || (shape.flags & kFlagDriver);
  return driver ? "cuda_driver" : "cuda_runtime";
}

}  // namespace

std::string_view category_of(const Trace& trace, const Shape& shape) {
  const bool outside = shape.kind == Kind::instant || shape.kind == Kind::other;
  if (outside && shape.detail != StringIndex::empty) return trace.text(shape.detail);
  return category_of_kind(shape);
}

}  // namespace gpuprof
