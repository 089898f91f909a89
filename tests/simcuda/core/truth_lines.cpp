// SPDX-License-Identifier: Apache-2.0
#include "tests/simcuda/core/truth_lines.h"

#include <fmt/format.h>

#include <iterator>

#include "tests/simcuda/core/truth_log.h"

namespace gpuprof::simcuda {
namespace {

using Buffer = fmt::memory_buffer;

template <typename... Args>
void add(Buffer& out, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
}

void add_shape(Buffer& out, const uint32_t* grid, const uint32_t* block, uint32_t shmem) {
  add(out, ",\"grid\":[{},{},{}],\"block\":[{},{},{}],\"shmem\":{}", grid[0], grid[1], grid[2],
      block[0], block[1], block[2], shmem);
}

void flush(const Buffer& out) {
  TruthLog::instance().append(std::string_view(out.data(), out.size()));
}

const char* type_name(GpuOpKind kind) {
  switch (kind) {
    case GpuOpKind::kKernel: return "kernel";
    case GpuOpKind::kMemcpy: return "memcpy";
    case GpuOpKind::kMemset: return "memset";
    case GpuOpKind::kGraph: return "graph";
    case GpuOpKind::kMarker: break;
  }
  return "marker";
}

const char* sync_name(SyncKind kind) {
  switch (kind) {
    case SyncKind::kEvent: return "event_synchronize";
    case SyncKind::kStreamWaitEvent: return "stream_wait_event";
    case SyncKind::kStream: return "stream_synchronize";
    case SyncKind::kContext: break;
  }
  return "context_synchronize";
}

}  // namespace

const char* copy_kind_name(CopyKind kind) {
  switch (kind) {
    case CopyKind::kHtoD: return "HtoD";
    case CopyKind::kDtoH: return "DtoH";
    case CopyKind::kDtoD: return "DtoD";
    case CopyKind::kHtoH: return "HtoH";
    case CopyKind::kPtoP: return "PtoP";
    case CopyKind::kNone: break;
  }
  return "none";
}

void write_truth(const ApiEvent& event, const CallDetails& d, uint32_t tid, CallOrigin origin,
                 bool trivial) {
  Buffer out;
  add(out,
      "{{\"t\":\"call\",\"name\":\"{}\",\"tid\":{},\"begin\":{},\"end\":{},\"corr\":{},\"ret\":{}",
      event.name, tid, event.begin, event.end, event.correlation, event.return_code);
  add(out, ",\"via\":\"{}\"", origin == CallOrigin::kNccl ? "nccl" : "app");
  if (trivial) add(out, ",\"trivial\":true");
  if (d.device >= 0) add(out, ",\"device\":{}", d.device);
  if (d.stream >= 0) add(out, ",\"stream\":{}", d.stream);
  if (d.bytes >= 0) add(out, ",\"bytes\":{}", d.bytes);
  if (d.pointer != nullptr) add(out, ",\"ptr\":\"{}\"", d.pointer);
  if (d.kernel != nullptr) add(out, ",\"kernel\":\"{}\"", json_escape(d.kernel));
  if (d.copy_kind != CopyKind::kNone) add(out, ",\"kind\":\"{}\"", copy_kind_name(d.copy_kind));
  if (d.waited) add(out, ",\"waited\":true");
  if (d.has_shape) add_shape(out, d.grid, d.block, d.shmem);
  if (d.event >= 0) add(out, ",\"event\":{}", d.event);
  if (d.graph >= 0) add(out, ",\"graph\":{}", d.graph);
  add(out, "}}");
  flush(out);
}

void write_truth(const GpuOpInfo& op) {
  if (!TruthLog::instance().enabled()) return;
  Buffer out;
  add(out,
      "{{\"t\":\"gpu\",\"type\":\"{}\",\"device\":{},\"context\":{},\"stream\":{},\"begin\":{},"
      "\"end\":{},\"corr\":{},\"arrived\":{}",
      type_name(op.kind), op.device, op.context_id, op.stream_id, op.begin, op.end, op.correlation,
      op.arrived);
  if (op.kind == GpuOpKind::kKernel) {
    add(out, ",\"name\":\"{}\"", json_escape(op.name));
    add_shape(out, op.grid, op.block, op.dynamic_shmem);
  } else if (op.kind == GpuOpKind::kMemcpy) {
    add(out, ",\"name\":\"{}\",\"bytes\":{},\"kind\":\"{}\"", copy_kind_name(op.copy_kind),
        op.bytes, copy_kind_name(op.copy_kind));
  } else if (op.kind == GpuOpKind::kMemset) {
    add(out, ",\"name\":\"memset\",\"bytes\":{},\"value\":{}", op.bytes, op.memset_value);
  }
  if (op.graph_id != 0) add(out, ",\"graph\":{}", op.graph_id);
  if (op.graph_node_id != 0) {
    add(out, ",\"node\":{},\"original\":{}", op.graph_node_id, op.graph_original_id);
  }
  add(out, "}}");
  flush(out);
}

void write_truth(const SyncInfo& info) {
  if (!TruthLog::instance().enabled()) return;
  Buffer out;
  add(out,
      "{{\"t\":\"gpu\",\"type\":\"sync\",\"name\":\"{}\",\"device\":{},\"stream\":{},\"begin\":{},"
      "\"end\":{},\"corr\":{}}}",
      sync_name(info.kind), info.device, info.stream_id, info.begin, info.end, info.correlation);
  flush(out);
}

}  // namespace gpuprof::simcuda
