// SPDX-License-Identifier: Apache-2.0
#include "formats/writers/perfetto/perfetto_tracks.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/trace/names.h"
#include "formats/views/left_out_text.h"

namespace gpuprof::perfetto {
namespace {

constexpr int64_t kMachineStride = 1 << 22;  // Linux process ids are below this

}  // namespace

// Pids of different hosts may be equal, and of containers that share their host's name; Perfetto
// knows one machine.
int64_t Tracks::machine_number(const Process& process) {
  const dump::Header& header = process.header;
  std::vector<ProcessKey>& same_pid = same_pids_[{header.host(), header.pid()}];
  const ProcessKey key = key_of(process);
  const auto known = std::find(same_pid.begin(), same_pid.end(), key);
  const auto container = static_cast<size_t>(known - same_pid.begin());
  if (known == same_pid.end()) same_pid.push_back(key);
  const auto next = static_cast<int64_t>(machines_.size() % 512);
  return machines_.try_emplace({header.host(), container}, next).first->second;
}

void Tracks::enter(const Process& process) {
  process_ = &process;
  const dump::Header& header = process.header;
  machine_offset_ = machine_number(process) * kMachineStride;
  pid_ = machine_offset_ + header.pid();
  prefix_ = fmt::format("{}/{}/{}/{}", header.host(), header.pid(), header.os_start_time(),
                        header.rank());
  const Id own = id_of(prefix_);
  process_uuid_ = own.uuid;
  if (own.fresh) {
    out_.process_track(process_uuid_, pid_, process_title(process),
                       header.rank() >= 0 ? fmt::format("rank {}", header.rank()) : "",
                       process.window_begin);
  }
}

// Tracks are numbered as they come: small numbers make small packets.
Tracks::Id Tracks::id_of(std::string path) {
  const auto [at, fresh] = ids_.try_emplace(std::move(path), ids_.size() + 1);
  return {at->second, fresh};
}

// Declares a track unless an earlier window of the process did.
uint64_t Tracks::declare(std::string_view path, uint64_t parent, std::string_view name,
                         int32_t rank, bool counter, bool ordered) {
  const auto [uuid, fresh] = id_of(fmt::format("{}/{}", prefix_, path));
  if (fresh) {
    out_.track({uuid, parent, name, rank, ordered, counter});
  }
  return uuid;
}

uint64_t Tracks::gpu_track(uint32_t device) {
  const dump::Header& header = process_->header;
  std::string name = fmt::format("GPU {}", device);
  for (const dump::Device& known : header.device()) {
    if (known.id() == device && !known.name().empty()) name += fmt::format(" {}", known.name());
  }
  if (const auto own = process_->gpu_names.find(device); own != process_->gpu_names.end()) {
    name += fmt::format(" \"{}\"", own->second);
  }
  if (header.rank() >= 0) {
    name += fmt::format(" (rank {})", header.rank());
  } else {
    name += fmt::format(" (pid {})", header.pid());
  }
  name += gpu_times_note(*process_);
  return declare(fmt::format("gpu{}", device), 0, name, 0, false, true);
}

LaneRows Tracks::rows_of(const Lane& lane) {
  switch (lane.type) {
    case LaneType::thread: return thread(lane);
    case LaneType::stream: return stream(lane);
    case LaneType::device: return device(lane);
    case LaneType::overhead: return overhead();
    case LaneType::other: break;
  }
  return other(lane);
}

LaneRows Tracks::thread(const Lane& lane) {
  const std::string path = fmt::format("thread{}", lane.thread_id);
  const auto [uuid, fresh] = id_of(fmt::format("{}/{}", prefix_, path));
  if (fresh) {
    out_.thread_track(uuid, pid_, thread_id(lane.thread_id), lane.thread_name,
                      process_->window_begin);
  }
  LaneRows rows;
  const std::string overlapping = fmt::format("thread {} overlapping", lane.thread_id);
  rows.families[0] = {Overlap::nest, path, overlapping, uuid, 0, {uuid}};
  rows.families[1] = {Overlap::nest, path + "/nvtx",
                      fmt::format("NVTX ranges of thread {}", lane.thread_id), process_uuid_, 1};
  rows.moments.tracks = {uuid};
  return rows;
}

LaneRows Tracks::stream(const Lane& lane) {
  const uint64_t gpu = gpu_track(lane.device);
  const std::string path = fmt::format("gpu{}/{}/{}", lane.device, lane.context, lane.stream);
  std::string name = fmt::format("stream {}", lane.stream);
  if (lane.context > 1) name += fmt::format(" context {}", lane.context);
  if (!lane.thread_name.empty()) name += fmt::format(" \"{}\"", lane.thread_name);
  const auto rank = static_cast<int32_t>(std::min(lane.stream, 1000000u));
  LaneRows rows;
  rows.type = lane.type;
  rows.families[0] = {Overlap::apart, path, name, gpu, rank, {declare(path, gpu, name, rank)}};
  rows.families[1] = {Overlap::nest, path + "/annotations", name + " annotations", gpu, rank};
  const auto number = gpus_.emplace(std::pair(process_uuid_, lane.device), gpus_.size()).first;
  rows.queue = {out_.stage(fmt::format("GPU {} {}", number->second, name)), out_.context(pid_),
                number->second};
  out_.define();
  return rows;
}

// A row of an outside trace.
LaneRows Tracks::other(const Lane& lane) {
  const std::string path = fmt::format("other{}", lane.thread_id);
  LaneRows rows;
  rows.type = lane.type;
  rows.families[0] = {Overlap::nest, path, lane.thread_name,
                      process_uuid_, 5,    {declare(path, process_uuid_, lane.thread_name, 5)}};
  rows.moments = rows.families[0];
  return rows;
}

LaneRows Tracks::device(const Lane& lane) {
  const uint64_t gpu = gpu_track(lane.device);
  const std::string path = fmt::format("gpu{}/sync", lane.device);
  LaneRows rows;
  rows.type = lane.type;
  rows.families[0] = {Overlap::apart, path, "synchronization", gpu, 2000000};
  rows.moments = {Overlap::nest, path + "/events", "events and memory", gpu, 2000001};
  return rows;
}

LaneRows Tracks::overhead() {
  LaneRows rows;
  rows.type = LaneType::overhead;
  rows.families[0] = {Overlap::apart, "overhead", "CUPTI overhead", process_uuid_, 2};
  return rows;
}

// What does not fit on the usual track goes to tracks of its own beside it.
void Tracks::declare_all(LaneRows::Family& family, size_t count) {
  for (size_t i = family.tracks.size(); i < count; ++i) {
    family.tracks.push_back(i == 0
                                ? declare(family.path, family.parent, family.name, family.rank)
                                : declare(fmt::format("{}/{}", family.path, i), family.parent,
                                          fmt::format("{} ({})", family.name, i + 1), family.rank));
  }
}

uint64_t Tracks::gpu_counter(uint32_t device, std::string_view source, std::string_view name,
                             int32_t rank, std::string_view unit) {
  const uint64_t parent = gpu_track(device);
  const auto [uuid, fresh] = id_of(fmt::format("{}/gpu{}/{}/{}", prefix_, device, source, name));
  if (fresh) out_.track({uuid, parent, name, rank, false, false, unit});
  return uuid;
}

uint64_t Tracks::named_counter(uint32_t device, std::string_view path, std::string_view name) {
  const bool of_process = device == Shape::kAbsent;
  const uint64_t parent = of_process ? process_uuid_ : gpu_track(device);
  const auto [uuid, fresh] = id_of(fmt::format("{}/{}", prefix_, path));
  if (!fresh) return uuid;
  const auto ends = [&](std::string_view unit) {
    return name.ends_with(unit) || name.ends_with(fmt::format("({})", unit));
  };
  Track track{uuid, parent, name, of_process ? 6 : 4000000};
  track.counter_bytes = ends("bytes");
  if (ends("%")) track.counter_unit = "%";
  track.counter_bare = true;
  out_.track(track);
  return uuid;
}

}  // namespace gpuprof::perfetto
