// SPDX-License-Identifier: Apache-2.0
#include "formats/trace/collective_kernels.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "formats/trace/collective_calls.h"

namespace gpuprof {
namespace {

// What an event is to collectives.
enum class Role : uint8_t { none, collective, group_start, group_end };

class CollectiveJoiner {
 public:
  CollectiveJoiner(const Trace& trace, Process& process)
      : trace_(trace), process_(process), events_(process.events) {
    if (events_.size() < trace.shapes.size()) return;  // one of many processes: looked at as met
    for (const Shape& shape : trace.shapes) roles_.push_back(role_of(shape));
  }

  void run() {
    for (const Lane& lane : process_.lanes) {
      if (lane.type == LaneType::thread && lane.may_have(Kind::collective)) join_lane(lane);
    }
    join_later();
    std::stable_sort(process_.collective_kernels.begin(), process_.collective_kernels.end(),
                     [](const CollectiveKernel& a, const CollectiveKernel& b) {
                       return number(a.collective) < number(b.collective);
                     });
  }

 private:
  // Collectives that one call leaves to a thread of NCCL's.
  struct Later {
    int64_t begin, end;  // of the time in which it is launched
    std::vector<uint32_t> collectives;
  };
  struct Launch {
    int64_t begin;
    uint32_t event, lane;
    bool taken = false;
  };

  Role role_of(const Shape& shape) const {
    if (shape.kind == Kind::collective) return Role::collective;
    if (shape.kind != Kind::call) return Role::none;
    const std::string_view name = trace_.text(shape.name);
    if (name == "ncclGroupStart") return Role::group_start;
    const bool ends = name == "ncclGroupEnd" || name == "ncclGroupSimulateEnd";
    return ends ? Role::group_end : Role::none;
  }

  const Shape& shape(uint32_t event) const { return trace_.shapes[events_.shape_of(event)]; }
  Role role(uint32_t event) const {
    return roles_.empty() ? role_of(shape(event)) : roles_[number(events_.shape_of(event))];
  }

  // A launch inside a collective's own call is its kernel. Inside a group, NCCL launches in the
  // outermost ncclGroupEnd, for all collectives called since the group began.
  void join_lane(const Lane& lane) {
    std::vector<uint32_t> pending;  // collectives of the open group
    int depth = 0;
    const uint32_t end = lane.first_event + lane.event_count;
    for (uint32_t i = lane.first_event; i < end; ++i) {
      const Role what = role(i);
      if (what == Role::collective) {
        const std::vector<uint32_t> work = launched_inside(i, end);
        for (const uint32_t launch : work) pair(i, launch);
        if (work.empty() && depth > 0) pending.push_back(i);
        if (work.empty() && depth == 0) add_later(i, {i});
      } else if (what == Role::group_start) {
        ++depth;
      } else if (what == Role::group_end) {
        if (depth > 0) --depth;
        if (depth > 0) continue;
        const std::vector<uint32_t> work = launched_inside(i, end);
        join_group(pending, work);
        if (work.empty()) add_later(i, std::move(pending));
        pending.clear();
      }
    }
  }

  // `call` returns ncclInProgress where communicators do not block.
  void add_later(uint32_t call, std::vector<uint32_t> collectives) {
    constexpr int32_t kInProgress = 7;
    if (collectives.empty() || shape(call).result != kInProgress) return;
    later_.push_back({events_.begin_of(call), INT64_MAX, std::move(collectives)});
  }

  void join_later() {
    if (later_.empty()) return;
    std::sort(later_.begin(), later_.end(),
              [](const Later& a, const Later& b) { return a.begin < b.begin; });
    find_ends_of_later();
    std::vector<Launch> launches = launches_of_nccl();
    for (const Later& batch : later_) {
      join_group(batch.collectives, take_launches(batch, launches));
    }
  }

  // NCCL launches before the next call on the communicator: it refuses that until it is done.
  void find_ends_of_later() {
    std::unordered_map<uint64_t, int64_t> next;  // call on a communicator
    for (auto batch = later_.rbegin(); batch != later_.rend(); ++batch) {
      for (const uint32_t each : batch->collectives) {
        const auto found = next.find(shape(each).communicator);
        if (found != next.end()) batch->end = std::min(batch->end, found->second);
      }
      for (const uint32_t each : batch->collectives) next[shape(each).communicator] = batch->begin;
    }
  }

  // Each batch has a thread of its own, and launches into its collectives' streams.
  std::vector<uint32_t> take_launches(const Later& batch, std::vector<Launch>& launches) {
    std::set<uint64_t> streams;
    for (const uint32_t each : batch.collectives) streams.insert(shape(each).stream_handle);
    std::vector<uint32_t> work;
    uint32_t lane = 0;
    auto launch =
        std::lower_bound(launches.begin(), launches.end(), batch.begin,
                         [](const Launch& one, int64_t begin) { return one.begin < begin; });
    for (; launch != launches.end() && launch->begin < batch.end && budget_ > 0; ++launch) {
      --budget_;
      if (launch->taken || (!work.empty() && launch->lane != lane)) continue;
      if (!streams.contains(shape(launch->event).stream_handle)) continue;
      launch->taken = true;
      lane = launch->lane;
      work.push_back(launch->event);
      if (work.size() == batch.collectives.size()) break;
    }
    return work;
  }

  // Launches of NCCL's kernels by threads that make no calls of NCCL, in order of begin.
  std::vector<Launch> launches_of_nccl() const {
    std::vector<Launch> found;
    uint32_t number_of_lane = 0;
    for (const Lane& lane : process_.lanes) {
      ++number_of_lane;
      if (lane.type != LaneType::thread || lane.may_have(Kind::collective)) continue;
      for (uint32_t i = lane.first_event; i < lane.first_event + lane.event_count; ++i) {
        const EventIndex work = events_.partner_of(i);
        if (shape(i).kind != Kind::launch || work == EventIndex::none) continue;
        const bool ours =
            trace_.text(shape(number(work)).name).find("nccl") != std::string_view::npos;
        if (ours) found.push_back({events_.begin_of(i), i, number_of_lane});
      }
    }
    std::sort(found.begin(), found.end(), [](const Launch& a, const Launch& b) {
      return std::tuple(a.begin, a.event) < std::tuple(b.begin, b.event);
    });
    return found;
  }

  // Host events within call `outer` that caused work on a stream.
  std::vector<uint32_t> launched_inside(uint32_t outer, uint32_t end) {
    std::vector<uint32_t> found;
    const int64_t outer_end = events_.end_of(outer);
    for (uint32_t i = outer + 1; i < end && events_.begin_of(i) <= outer_end; ++i) {
      if (budget_ == 0) break;
      --budget_;
      const Kind kind = shape(i).kind;
      if (kind == Kind::collective) break;  // its launches are its own
      const bool launches = kind == Kind::launch || kind == Kind::copy || kind == Kind::set;
      if (launches && events_.end_of(i) <= outer_end && events_.partner_of(i) != EventIndex::none) {
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
    for (const uint32_t c : collectives) {
      if (has_stream(shape(c))) {
        of_stream[shape(c).stream_handle].push_back(c);
      } else if (by_stream.size() == 1) {  // where all work is
        of_stream[by_stream.begin()->first].push_back(c);
      }
    }
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
    for (EventIndex work = events_.partner_of(launch); work != EventIndex::none;
         work = process_.event(work).next_sibling) {
      const Kind kind = shape(number(work)).kind;
      if (kind != Kind::gpu_kernel && kind != Kind::gpu_copy) continue;
      process_.collective_kernels.push_back({static_cast<EventIndex>(collective), work});
    }
  }

  const Trace& trace_;
  Process& process_;
  const EventTable& events_;
  std::vector<Role> roles_;  // by shape; empty: there are more shapes than events
  std::vector<Later> later_;
  uint64_t budget_ =
      16 * process_.events.size() + 1;  // calls nest, so this is ample; bad files end
};

}  // namespace

void join_collectives(const Trace& trace, Process& process) {
  CollectiveJoiner(trace, process).run();
}

}  // namespace gpuprof
