// SPDX-License-Identifier: Apache-2.0
#include "formats/trace_join.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace gpuprof {
namespace {

struct Correlated {
  uint32_t correlation;
  uint32_t event;
};

// Which of several host events of one correlation id is the one that the GPU work belongs to.
int rank_of(const Shape& shape) {
  const int callback = shape.flags & kFlagFromCallback ? 1 : 0;
  switch (shape.kind) {
    case Kind::launch: return 0 + callback;
    case Kind::copy:
    case Kind::set: return 2 + callback;
    case Kind::alloc:
    case Kind::dealloc: return 4 + callback;
    case Kind::sync:
    case Kind::event:
    case Kind::stream: return 6 + callback;
    default: return 8 + callback;
  }
}

class Joiner {
 public:
  Joiner(const Trace& trace, Process& process) : trace_(trace), process_(process) {}

  void run() {
    join_correlations();
    join_streams();
    for (const Lane& lane : process_.lanes) {
      if (lane.type == LaneType::thread) join_collectives(lane);
    }
  }

 private:
  const Shape& shape(uint32_t event) const { return trace_.shape(process_.events[event]); }
  Event& event(uint32_t index) { return process_.events[index]; }

  void join_correlations() {
    std::vector<Correlated> host, gpu;
    for (uint32_t i = 0; i < process_.events.size(); ++i) {
      const Event& e = process_.events[i];
      const Kind kind = shape(i).kind;
      if (!e.correlation || kind == Kind::overhead) continue;
      (is_gpu_kind(kind) ? gpu : host).push_back({e.correlation, i});
    }
    std::sort(host.begin(), host.end(), [this](const Correlated& a, const Correlated& b) {
      if (a.correlation != b.correlation) return a.correlation < b.correlation;
      return std::tuple(rank_of(shape(a.event)), event(a.event).begin, a.event) <
             std::tuple(rank_of(shape(b.event)), event(b.event).begin, b.event);
    });
    std::sort(gpu.begin(), gpu.end(), [this](const Correlated& a, const Correlated& b) {
      if (a.correlation != b.correlation) return a.correlation < b.correlation;
      return std::tuple(event(a.event).begin, a.event) < std::tuple(event(b.event).begin, b.event);
    });
    auto cause = host.begin();
    for (size_t i = 0; i < gpu.size(); ++i) {
      while (cause != host.end() && cause->correlation < gpu[i].correlation) ++cause;
      if (cause == host.end()) break;
      if (cause->correlation != gpu[i].correlation) continue;
      Event& work = event(gpu[i].event);
      work.partner = static_cast<EventIndex>(cause->event);
      Event& call = event(cause->event);
      if (call.partner == EventIndex::none) {
        call.partner = static_cast<EventIndex>(gpu[i].event);
      } else {
        event(gpu[i - 1].event).next_sibling = static_cast<EventIndex>(gpu[i].event);
      }
    }
  }

  void join_streams() {
    std::set<std::tuple<uint64_t, uint32_t, uint32_t, uint32_t>> known;
    for (const Lane& lane : process_.lanes) {
      if (lane.type != LaneType::stream) continue;
      for (const Event& work : process_.lane_events(lane)) {
        if (work.partner == EventIndex::none) continue;
        const uint64_t handle = trace_.shape(process_.event(work.partner)).stream_handle;
        if (!known.emplace(handle, lane.device, lane.context, lane.stream).second) continue;
        process_.streams.push_back({handle, lane.device, lane.context, lane.stream});
      }
    }
  }

  // A launch inside a collective's own call is its kernel. Inside a group, NCCL launches in the
  // outermost ncclGroupEnd, for all collectives called since the group began.
  void join_collectives(const Lane& lane) {
    std::vector<uint32_t> pending;  // collectives of the open group
    int depth = 0;
    const uint32_t end = lane.first_event + lane.event_count;
    for (uint32_t i = lane.first_event; i < end; ++i) {
      const Shape& s = shape(i);
      if (s.kind == Kind::collective) {
        const std::vector<uint32_t> work = launched_inside(i, end);
        for (const uint32_t launch : work) pair(i, launch);
        if (work.empty() && depth > 0) pending.push_back(i);
      } else if (s.kind == Kind::call) {
        const std::string_view name = trace_.text(s.name);
        if (name == "ncclGroupStart") ++depth;
        if (name != "ncclGroupEnd") continue;
        if (depth > 0) --depth;
        if (depth == 0) {
          join_group(pending, launched_inside(i, end));
          pending.clear();
        }
      }
    }
    std::stable_sort(process_.collective_kernels.begin(), process_.collective_kernels.end(),
                     [](const CollectiveKernel& a, const CollectiveKernel& b) {
                       return number(a.collective) < number(b.collective);
                     });
  }

  // Host events within call `outer` that caused work on a stream.
  std::vector<uint32_t> launched_inside(uint32_t outer, uint32_t end) {
    std::vector<uint32_t> found;
    for (uint32_t i = outer + 1; i < end && event(i).begin <= event(outer).end; ++i) {
      if (budget_ == 0) break;
      --budget_;
      const Kind kind = shape(i).kind;
      if (kind == Kind::collective) break;  // its launches are its own
      const bool launches = kind == Kind::launch || kind == Kind::copy || kind == Kind::set;
      if (launches && event(i).end <= event(outer).end && event(i).partner != EventIndex::none) {
        found.push_back(i);
      }
    }
    return found;
  }

  // Within a stream, in order where there are as many launches as collectives; else NCCL has fused
  // them, and each of the kernels works for all of them.
  void join_group(const std::vector<uint32_t>& collectives, const std::vector<uint32_t>& launches) {
    std::map<uint64_t, std::vector<uint32_t>> by_stream;
    for (const uint32_t launch : launches) by_stream[shape(launch).stream_handle].push_back(launch);
    std::map<uint64_t, std::vector<uint32_t>> of_stream;
    for (const uint32_t c : collectives) of_stream[shape(c).stream_handle].push_back(c);
    for (const auto& [stream, members] : of_stream) {
      const auto found = by_stream.find(stream);
      if (found == by_stream.end()) continue;
      const std::vector<uint32_t>& work = found->second;
      for (size_t i = 0; i < members.size(); ++i) {
        if (members.size() == work.size()) {
          pair(members[i], work[i]);
        } else {
          for (const uint32_t launch : work) pair(members[i], launch);
        }
      }
    }
  }

  void pair(uint32_t collective, uint32_t launch) {
    for (EventIndex work = event(launch).partner; work != EventIndex::none;
         work = process_.event(work).next_sibling) {
      const Kind kind = shape(number(work)).kind;
      if (kind != Kind::gpu_kernel && kind != Kind::gpu_copy) continue;
      process_.collective_kernels.push_back({static_cast<EventIndex>(collective), work});
    }
  }

  const Trace& trace_;
  Process& process_;
  uint64_t budget_ =
      16 * process_.events.size() + 1;  // calls nest, so this is ample; bad files end
};

}  // namespace

void join_process(const Trace& trace, Process& process) { Joiner(trace, process).run(); }

}  // namespace gpuprof
