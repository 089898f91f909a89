// SPDX-License-Identifier: Apache-2.0
#include "formats/views/slices.h"

#include <fmt/format.h>

#include <algorithm>

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
    if (!program.empty()) program += ' ';
    if (program.size() > 100) {
      program += "...";
      break;
    }
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
