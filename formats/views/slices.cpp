// SPDX-License-Identifier: Apache-2.0
#include "formats/views/slices.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>

namespace gpuprof {
namespace {

using LiveBytes = std::unordered_map<uint64_t, uint64_t>;  // by address

constexpr int64_t kLargest = int64_t{1} << 60;  // of memory; more is an error in the file

int64_t sum_of(const LiveBytes& live) {
  int64_t sum = 0;
  for (const auto& [address, bytes] : live) {
    if (bytes <= uint64_t{kLargest} && sum <= kLargest) sum += static_cast<int64_t>(bytes);
  }
  return sum;
}

// `live`: what is allocated before the first change; `of_stretch`: of which memory.
std::vector<MemoryPoint> curve_of(std::vector<MemoryChange>& changes, LiveBytes live,
                                  const Process& process, LiveBytes Stretch::*of_stretch) {
  std::stable_sort(changes.begin(), changes.end(),
                   [](const MemoryChange& a, const MemoryChange& b) { return a.time < b.time; });
  std::vector<MemoryPoint> points;
  int64_t total = sum_of(live);
  const auto point = [&](const MemoryChange& c, int64_t change) {
    total += change;
    points.push_back({c.time, total, change, c.event});
  };
  auto stretch = process.stretches.begin();
  for (const MemoryChange& c : changes) {
    for (; stretch != process.stretches.end() && stretch->begin <= c.time; ++stretch) {
      live = (*stretch).*of_stretch;
      total = sum_of(live);
    }
    if (c.release) {
      const auto found = live.find(c.address);
      if (found == live.end()) continue;
      point(c, -static_cast<int64_t>(found->second));
      live.erase(found);
    } else if (c.bytes <= uint64_t{kLargest} && total <= kLargest) {
      const auto [at, fresh] = live.emplace(c.address, c.bytes);
      if (!fresh) {  // its release was not seen
        total -= static_cast<int64_t>(at->second);
        at->second = c.bytes;
      }
      point(c, static_cast<int64_t>(c.bytes));
    }
  }
  return points;
}

constexpr uint32_t kPinned = 2;    // CUPTI_ACTIVITY_MEMORY_KIND_PINNED
constexpr uint32_t kReleased = 2;  // CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE

bool is_of_memory(const Shape& shape) {
  return shape.kind == Kind::alloc || shape.kind == Kind::dealloc ||
         shape.kind == Kind::gpu_memory || shape.kind == Kind::tensor;
}

int64_t total_of(const Stretch& stretch, const TensorCurve& curve) {
  for (const Stretch::TensorTotal& each : stretch.tensors) {
    if (each.device_type == curve.device_type && each.device_id == curve.device_id) {
      return each.bytes;
    }
  }
  return 0;
}

// Points in order of time: events of a lane are, lanes among each other are
// not.
std::vector<TensorCurve> tensor_curves(const Trace& trace, const Process& process) {
  std::map<std::pair<uint32_t, uint32_t>, TensorCurve> curves;
  for (uint32_t i = 0; i < process.events.size(); ++i) {
    const Shape& shape = trace.shapes[process.events.shape_of(i)];
    if (shape.kind != Kind::tensor) continue;
    const Event event = process.events[i];
    const EventExtra& extra = process.extra(event);
    TensorCurve& curve = curves[{shape.device_type, shape.device_id}];
    curve.device_type = shape.device_type;
    curve.device_id = shape.device_id;
    curve.totals_given = extra.address2 != EventExtra::kNotGiven;
    const auto limited = [](int64_t value) { return std::clamp(value, -kLargest, kLargest); };
    curve.points.push_back({event.begin, limited(static_cast<int64_t>(extra.address2)),
                            limited(static_cast<int64_t>(extra.bytes)),
                            static_cast<EventIndex>(i)});
  }
  std::vector<TensorCurve> out;
  for (auto& [key, curve] : curves) {
    std::stable_sort(curve.points.begin(), curve.points.end(),
                     [](const MemoryPoint& a, const MemoryPoint& b) { return a.time < b.time; });
    int64_t total = 0;
    auto stretch = process.stretches.begin();
    for (MemoryPoint& point : curve.points) {
      for (; stretch != process.stretches.end() && stretch->begin <= point.time; ++stretch) {
        total = total_of(*stretch, curve);
      }
      total = std::clamp(total + point.change, -kLargest, kLargest);
      if (!curve.totals_given) point.total = total;
    }
    out.push_back(std::move(curve));
  }
  return out;
}

}  // namespace

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

bool names_host_memory(std::string_view api) { return api.find("Host") != std::string_view::npos; }

MemoryChanges memory_changes(const Trace& trace, const Process& process) {
  MemoryChanges calls, records;
  for (uint32_t i = 0; i < process.events.size(); ++i) {
    const Shape& shape = trace.shapes[process.events.shape_of(i)];
    const bool call = shape.kind == Kind::alloc || shape.kind == Kind::dealloc;
    if (!call && shape.kind != Kind::gpu_memory) continue;
    const Event event = process.events[i];
    const EventExtra& extra = process.extra(event);
    const auto index = static_cast<EventIndex>(i);
    if (shape.kind == Kind::gpu_memory) {
      auto& list = shape.memory_kind == kPinned ? records.host : records.device;
      list.push_back(
          {event.begin, extra.address, extra.bytes, shape.cupti_type == kReleased, index});
    } else {
      if (shape.result != 0 || extra.address == 0) continue;
      const bool host = names_host_memory(trace.text(shape.name));
      const bool release = shape.kind == Kind::dealloc;
      (host ? calls.host : calls.device)
          .push_back(
              {release ? event.begin : event.end, extra.address, extra.bytes, release, index});
    }
  }
  const bool recorded = !records.device.empty() || !records.host.empty();
  return recorded ? std::move(records) : std::move(calls);
}

MemoryCurves memory_curves(const Trace& trace, const Process& process) {
  LiveBytes device_before, host_before;
  if (const LiveMemory* const live = process.live_at(LiveMoment::window_begins)) {
    for (const LiveAllocation& each : live->allocations) {
      if (each.is_block()) continue;
      const bool host = names_host_memory(trace.text(each.api));
      (host ? host_before : device_before)[each.address] = each.bytes;
    }
  }
  // Most traces of dumps have none, and many more events than shapes.
  if (process.events.size() > trace.shapes.size() &&
      std::none_of(trace.shapes.begin(), trace.shapes.end(), is_of_memory)) {
    return {{}, {}, sum_of(device_before), {}};
  }
  MemoryChanges changes = memory_changes(trace, process);
  return {curve_of(changes.device, device_before, process, &Stretch::device),
          curve_of(changes.host, host_before, process, &Stretch::host), sum_of(device_before),
          tensor_curves(trace, process)};
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
