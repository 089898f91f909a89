// SPDX-License-Identifier: Apache-2.0
#include "formats/views/slices.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace gpuprof {

bool earlier(const Slice& a, const Slice& b) {
  return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
}

std::vector<std::vector<Slice>> split_tracks(std::span<const Slice> slices, Overlap overlap) {
  TrackSplitter splitter(overlap);
  std::vector<std::vector<Slice>> tracks(1);
  for (Slice slice : slices) {
    const size_t track = splitter.place(slice, [](size_t, int64_t) {});
    tracks.resize(splitter.tracks());
    tracks[track].push_back(slice);
  }
  return tracks;
}

const char* category_of(const Shape& shape) {
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

std::string_view category_of(const Trace& trace, const Shape& shape) {
  const bool outside = shape.kind == Kind::instant || shape.kind == Kind::other;
  if (outside && shape.detail != StringIndex::empty) return trace.text(shape.detail);
  return category_of(shape);
}

bool is_instant(Kind kind) {
  return kind == Kind::nvtx_mark || kind == Kind::tensor || kind == Kind::instant;
}

bool drawable(const Shape& shape) {
  return !is_gpu_kind(shape.kind) || !(shape.flags & kFlagNoTime);
}

std::map<uint32_t, uint32_t> collectives_by_kernel(const Process& process) {
  std::map<uint32_t, uint32_t> found;
  for (uint32_t i = 0; i < process.collective_kernels.size(); ++i) {
    found.emplace(number(process.collective_kernels[i].kernel), i);
  }
  return found;
}

StackIndex last_stack(const Process& process) {
  auto last = StackIndex::none;
  if (process.stacks.empty()) return last;
  for (const EventExtra& extra : process.extras) last = std::max(last, extra.stack);
  for (const auto& [id, node] : process.graph_nodes) last = std::max(last, node.stack);
  return last;
}

std::string data_worker_title(const Process& process) {
  const dump::Header& header = process.header;
  return fmt::format("DataLoader worker {} of {}", header.worker() ? header.worker() - 1 : 0,
                     header.rank() >= 0 ? fmt::format("rank {}", header.rank())
                                        : fmt::format("process {}", header.parent_pid()));
}

std::string_view gpu_times_note(const Process& process) {
  return process.summary.gpu_times_from() == "events" ? ", times from CUDA events" : "";
}

std::string process_title(const Process& process) {
  const dump::Header& header = process.header;
  std::string program;
  for (const std::string& word : header.command()) {
    if (program.size() > 100) break;
    if (!program.empty()) program += ' ';
    program += word;
  }
  if (program.empty()) program = header.executable();
  std::string title =
      header.rank() >= 0 ? fmt::format("rank {}: {}", header.rank(), program) : program;
  if (process.is_data_worker()) title = data_worker_title(process);
  if (!header.host().empty()) title += fmt::format(" ({})", header.host());
  return title;
}

const dump::Device* device_of(const Process& process, uint32_t device) {
  for (const dump::Device& known : process.header.device()) {
    if (known.id() == device) return &known;
  }
  return nullptr;
}

size_t context_number(const Process& process, const Lane& stream) {
  std::set<uint32_t> contexts;
  for (const Lane& lane : process.lanes) {
    if (lane.type != LaneType::stream || lane.device != stream.device) continue;
    if (lane.stream == stream.stream && lane.context < stream.context) {
      contexts.insert(lane.context);
    }
  }
  return std::min<size_t>(contexts.size(), 5);
}

uint32_t main_thread(const Process& process) {
  uint32_t first = 0;
  for (const Lane& lane : process.lanes) {
    if (lane.type != LaneType::thread) continue;
    if (lane.thread_id == process.header.pid()) return lane.thread_id;
    if (!first) first = lane.thread_id;
  }
  return process.header.pid() ? process.header.pid() : first;
}

}  // namespace gpuprof
