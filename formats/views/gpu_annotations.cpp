// SPDX-License-Identifier: Apache-2.0
#include "formats/views/gpu_annotations.h"

#include <algorithm>

namespace gpuprof {
namespace {

constexpr size_t kDeepest = 256;  // of ranges open at a time; beyond, the outermost are left out

bool has_gpu_twin(const Trace& trace, const Shape& shape) {
  if (shape.kind != Kind::nvtx_range) return false;
  const std::string_view name = trace.text(shape.label);
  return !names_torch_data_loader(name) && !name.starts_with("ProfilerStep#") &&
         !name.starts_with("nccl:") && !name.starts_with("gloo:");
}

// Where one range has work, by stream.
class Twins {
 public:
  Twins(const Trace& trace, const Process& process) : trace_(trace), process_(process) {}

  void range(EventIndex range) {
    if (open_.size() == kDeepest) open_.erase(open_.begin());
    open_.push_back({range, {}});
  }

  // `call` begins: the ranges around it get its work.
  void call(const Event& call) {
    std::erase_if(open_, [&](const Open& o) { return over(o, call.begin); });
    if (open_.empty()) return;
    for (EventIndex at = call.partner; at != EventIndex::none;
         at = process_.event(at).next_sibling) {
      const Event& work = process_.event(at);
      const Shape& shape = trace_.shape(work);
      if (!is_stream_work(shape.kind) || !drawable(shape)) continue;
      for (Open& open : open_) extend(open, work);
    }
  }

  void end_thread() {
    for (const Open& open : open_) store(open);
    open_.clear();
  }

  std::map<LaneIndex, std::vector<Slice>> take() {
    for (auto& [lane, slices] : done_) {
      std::stable_sort(slices.begin(), slices.end(), earlier);
    }
    return std::move(done_);
  }

 private:
  struct Open {
    EventIndex range;
    std::vector<std::pair<LaneIndex, Slice>> streams;
  };

  bool over(const Open& open, int64_t time) {
    if (process_.event(open.range).end > time) return false;
    store(open);
    return true;
  }

  void store(const Open& open) {
    for (const auto& [lane, slice] : open.streams) done_[lane].push_back(slice);
  }

  void extend(Open& open, const Event& work) {
    const LaneIndex of_work = process_.lane_index(work);
    for (auto& [lane, slice] : open.streams) {
      if (lane != of_work) continue;
      slice.begin = std::min(slice.begin, work.begin);
      slice.end = std::max(slice.end, work.end);
      return;
    }
    open.streams.push_back({of_work, {open.range, work.begin, work.end}});
  }

  const Trace& trace_;
  const Process& process_;
  std::vector<Open> open_;
  std::map<LaneIndex, std::vector<Slice>> done_;
};

}  // namespace

// As PyTorch itself names it; names_data_loading (formats/core/names.h) also takes others'.
bool names_torch_data_loader(std::string_view range) {
  return (range.starts_with("enumerate(DataLoader)#") && range.ends_with(".__next__")) ||
         range.starts_with("enumerate(DataPipe)#");
}

std::map<LaneIndex, std::vector<Slice>> gpu_annotations(const Trace& trace,
                                                        const Process& process) {
  Twins twins(trace, process);
  std::vector<bool> twin;  // by shape
  for (const Shape& shape : trace.shapes) twin.push_back(has_gpu_twin(trace, shape));
  if (std::find(twin.begin(), twin.end(), true) == twin.end()) return {};
  for (const Lane& lane : process.lanes) {
    if (lane.type != LaneType::thread) continue;
    for (uint32_t i = lane.first_event; i < lane.first_event + lane.event_count; ++i) {
      const ShapeIndex shape = process.events.shape_of(i);
      if (twin[number(shape)]) {
        twins.range(static_cast<EventIndex>(i));
      } else if (process.events.partner_of(i) != EventIndex::none &&
                 !is_gpu_kind(trace.shapes[shape].kind)) {
        twins.call(process.events[i]);
      }
    }
    twins.end_thread();
  }
  return twins.take();
}

std::vector<bool> crossing_work(
    const std::vector<Slice>& annotations,
    const std::function<void(const std::function<void(const Slice&)>&)>& work) {
  std::vector<bool> cut(annotations.size());
  std::vector<std::pair<int64_t, size_t>> edges;
  for (size_t i = 0; i < annotations.size(); ++i) {
    edges.emplace_back(annotations[i].begin, i);
    edges.emplace_back(annotations[i].end, i);
  }
  std::sort(edges.begin(), edges.end());
  auto edge = edges.begin();
  work([&](const Slice& slice) {
    while (edge != edges.end() && edge->first <= slice.begin) ++edge;
    for (; edge != edges.end() && edge->first < slice.end; ++edge) cut[edge->second] = true;
  });
  return cut;
}

std::vector<Slice> annotations_around(const std::vector<Slice>& annotations,
                                      const std::vector<bool>& cut, std::vector<Slice>& crossing) {
  std::vector<Slice> fitting;
  for (size_t i = 0; i < annotations.size(); ++i) {
    (cut[i] ? crossing : fitting).push_back(annotations[i]);
  }
  auto tracks = split_tracks(fitting, Overlap::nest);
  for (size_t i = 1; i < tracks.size(); ++i) {
    crossing.insert(crossing.end(), tracks[i].begin(), tracks[i].end());
  }
  std::stable_sort(crossing.begin(), crossing.end(), earlier);
  return std::move(tracks[0]);
}

}  // namespace gpuprof
