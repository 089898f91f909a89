// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/event_work.h"

#include "collector/record/names.h"
#include "collector/record/recorder.h"
#include "collector/record/session.h"

namespace gpuprof {
namespace {

// CUpti_ActivityMemcpyKind of a cudaMemcpyKind; 0: not known.
uint8_t copy_kind(uint8_t direction) {
  constexpr uint8_t kKinds[] = {9, 1, 2, 8, 0};
  return direction < 5 ? kKinds[direction] : uint8_t{0};
}

bool launches_graph(const Record& call) {
  return call.api < api_count() && api_rows()[call.api].role == ApiRole::graph_launch;
}

void fill_kernel(GpuKernelPayload& kernel, const Record& call) {
  const LaunchPayload& launch = call.launch;
  LaunchShape shape{};
  shape.grid = {launch.grid_x, launch.grid_y, launch.grid_z};
  shape.block = {launch.block_x, launch.block_y, launch.block_z};
  shape.dynamic_shared_bytes = launch.shared_bytes;
  kernel.shape = intern_shape(shape);
  kernel.name = call.flags & kFlagNamed
                    ? static_cast<StringId>(launch.function)
                    : intern_text(lookup_function(reinterpret_cast<const void*>(launch.function)));
}

}  // namespace

Record gpu_work_of(const Record& call, uint64_t stream, int device, uint64_t context) {
  Record out{};
  const bool graph = call.kind == Kind::launch && launches_graph(call);
  const Kind kind = graph                       ? Kind::gpu_graph
                    : call.kind == Kind::launch ? Kind::gpu_kernel
                    : call.kind == Kind::copy   ? Kind::gpu_copy
                                                : Kind::gpu_set;
  begin_record(&out, kind, 0, 0, 0, call.correlation);
  const auto stream_number = static_cast<uint32_t>(stream);
  const auto device_number = static_cast<uint16_t>(device);
  const auto context_id = static_cast<uint16_t>(context);
  if (call.kind == Kind::launch) {
    auto& kernel = out.gpu_kernel;
    kernel.stream = stream_number, kernel.device = device_number, kernel.context = context_id;
    if (!graph) fill_kernel(kernel, call);
    return out;
  }
  auto& copy = out.gpu_copy;
  copy.stream = stream_number, copy.device = device_number, copy.context = context_id;
  copy.peer_source = copy.peer_destination = 0xffff;
  copy.bytes = call.kind == Kind::copy ? call.copy.bytes : call.set.bytes;
  if (call.kind == Kind::copy) copy.direction = copy_kind(call.copy.direction);
  if (call.kind == Kind::set) copy.value = call.set.value;
  return out;
}

}  // namespace gpuprof
