// SPDX-License-Identifier: Apache-2.0
#include "formats/trace/trace_join.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "formats/trace/collective_calls.h"

namespace gpuprof {
namespace {

struct Pair {
  uint32_t key;
  uint32_t event;
  bool operator==(const Pair&) const = default;
};

// Correlation id -> host event. Ids of a window are consecutive numbers, nearly; those of a file
// that was made up may be anything.
class CallTable {
 public:
  static constexpr uint32_t kNone = 0xffffffff;

  void prepare(uint32_t low, uint32_t high, size_t count) {
    const uint64_t range = uint64_t{high} - low + 1;
    low_ = low;
    if (range <= count * 4 + (1 << 12)) dense_.assign(range, kNone);
  }
  uint32_t& place(uint32_t correlation) {
    if (!dense_.empty()) return dense_[correlation - low_];
    return sparse_.try_emplace(correlation, kNone).first->second;
  }
  uint32_t find(uint32_t correlation) const {
    if (!dense_.empty()) {
      const uint32_t at = correlation - low_;
      return at < dense_.size() ? dense_[at] : kNone;
    }
    const auto found = sparse_.find(correlation);
    return found == sparse_.end() ? kNone : found->second;
  }

 private:
  uint32_t low_ = 0;
  std::vector<uint32_t> dense_;  // from low_ on
  std::unordered_map<uint32_t, uint32_t> sparse_;
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

enum class Side : uint8_t { none, host, gpu };

class Joiner {
 public:
  Joiner(const Trace& trace, Process& process)
      : trace_(trace), process_(process), events_(process.events) {
    if (events_.size() < trace.shapes.size()) return;  // one of many processes: looked at as met
    for (const Shape& shape : trace.shapes) {
      sides_.push_back(side_of(shape));
      roles_.push_back(role_of(shape));
    }
  }

  void run() {
    join_correlations();
    join_streams();
    for (const Lane& lane : process_.lanes) {
      if (lane.type == LaneType::thread && lane.may_have(Kind::collective)) join_collectives(lane);
    }
    join_later();
    std::stable_sort(process_.collective_kernels.begin(), process_.collective_kernels.end(),
                     [](const CollectiveKernel& a, const CollectiveKernel& b) {
                       return number(a.collective) < number(b.collective);
                     });
  }

 private:
  struct Later {
    int64_t begin, end;  // of the time in which it is launched
    std::vector<uint32_t> collectives;
  };
  struct Launch {
    int64_t begin;
    uint32_t event, lane;
    bool taken = false;
  };

  // What an event is to collectives.
  enum class Role : uint8_t { none, collective, group_start, group_end };
  Role role_of(const Shape& shape) const {
    if (shape.kind == Kind::collective) return Role::collective;
    if (shape.kind != Kind::call) return Role::none;
    const std::string_view name = trace_.text(shape.name);
    if (name == "ncclGroupStart") return Role::group_start;
    const bool ends = name == "ncclGroupEnd" || name == "ncclGroupSimulateEnd";
    return ends ? Role::group_end : Role::none;
  }

  static Side side_of(const Shape& shape) {
    if (shape.kind == Kind::overhead) return Side::none;
    return is_gpu_kind(shape.kind) ? Side::gpu : Side::host;
  }

  const Shape& shape(uint32_t event) const { return trace_.shapes[events_.shape_of(event)]; }
  Event event(uint32_t index) const { return events_[index]; }
  Side side(uint32_t event) const {
    if (!events_.correlation_of(event)) return Side::none;
    return sides_.empty() ? side_of(shape(event)) : sides_[number(events_.shape_of(event))];
  }

  // Calls `visit` with each event of a side that has a correlation id.
  template <typename Visit>
  void each(Side wanted, const Visit& visit) const {
    constexpr uint64_t kGpuKinds = ~uint64_t{0} << static_cast<uint8_t>(Kind::gpu_kernel);
    static_assert(is_gpu_kind(Kind::gpu_kernel) && !is_gpu_kind(Kind::stack));
    for (const Lane& lane : process_.lanes) {
      if (!(lane.kinds & (wanted == Side::gpu ? kGpuKinds : ~kGpuKinds))) continue;
      for (uint32_t i = lane.first_event; i < lane.first_event + lane.event_count; ++i) {
        if (side(i) == wanted) visit(i, events_.correlation_of(i));
      }
    }
  }

  void join_correlations() {
    choose_calls();
    each(Side::gpu, [&](uint32_t work, uint32_t correlation) {
      const uint32_t call = calls_.find(correlation);
      if (call == CallTable::kNone) return;
      events_.set_partner(work, static_cast<EventIndex>(call));
      const EventIndex first = events_.partner_of(call);
      if (first == EventIndex::none) {
        events_.set_partner(call, static_cast<EventIndex>(work));
      } else {
        several_.push_back({call, number(first)});
        several_.push_back({call, work});
      }
    });
    chain_siblings();
    find_shadowed();
  }

  // The host event of each correlation id that GPU work belongs to.
  void choose_calls() {
    uint32_t low = UINT32_MAX, high = 0;
    size_t count = 0;
    each(Side::host, [&](uint32_t, uint32_t correlation) {
      low = std::min(low, correlation);
      high = std::max(high, correlation);
      ++count;
    });
    if (!count) return;
    calls_.prepare(low, high, count);
    each(Side::host, [&](uint32_t call, uint32_t correlation) {
      uint32_t& chosen = calls_.place(correlation);
      if (chosen != CallTable::kNone) {
        rivals_.push_back({correlation, chosen});
        rivals_.push_back({correlation, call});
        if (!better(call, chosen)) return;
      }
      chosen = call;
    });
  }

  bool better(uint32_t a, uint32_t b) const {
    return std::tuple(rank_of(shape(a)), events_.begin_of(a), a) <
           std::tuple(rank_of(shape(b)), events_.begin_of(b), b);
  }

  // Work of one call, in order of begin.
  void chain_siblings() {
    std::sort(several_.begin(), several_.end(), [this](const Pair& a, const Pair& b) {
      if (a.key != b.key) return a.key < b.key;
      return std::tuple(events_.begin_of(a.event), a.event) <
             std::tuple(events_.begin_of(b.event), b.event);
    });
    several_.erase(std::unique(several_.begin(), several_.end()), several_.end());
    for (size_t i = 0; i < several_.size(); ++i) {
      const auto [call, work] = several_[i];
      if (i == 0 || several_[i - 1].key != call) {
        events_.set_partner(call, static_cast<EventIndex>(work));
      } else {
        events_.set_next_sibling(several_[i - 1].event, static_cast<EventIndex>(work));
      }
    }
    std::vector<Pair>().swap(several_);
  }

  // The id belongs to the call that has the work, else to the first.
  void find_shadowed() {
    std::sort(rivals_.begin(), rivals_.end(), [](const Pair& a, const Pair& b) {
      return std::pair(a.key, a.event) < std::pair(b.key, b.event);
    });
    rivals_.erase(std::unique(rivals_.begin(), rivals_.end()), rivals_.end());
    for (size_t i = 0; i < rivals_.size();) {
      const uint32_t correlation = rivals_[i].key;
      const uint32_t chosen = calls_.find(correlation);
      const bool works = events_.partner_of(chosen) != EventIndex::none;
      const uint32_t owner = works ? chosen : rivals_[i].event;
      for (; i < rivals_.size() && rivals_[i].key == correlation; ++i) {
        if (rivals_[i].event != owner) {
          process_.shadowed.push_back(static_cast<EventIndex>(rivals_[i].event));
        }
      }
    }
    std::sort(process_.shadowed.begin(), process_.shadowed.end());
    std::vector<Pair>().swap(rivals_);
  }

  void join_streams() {
    for (const Lane& lane : process_.lanes) {
      if (lane.type != LaneType::stream) continue;
      std::set<uint64_t> known;
      uint64_t last = 0;
      for (uint32_t i = lane.first_event; i < lane.first_event + lane.event_count; ++i) {
        const EventIndex call = events_.partner_of(i);
        if (call == EventIndex::none) continue;
        const uint64_t handle = shape(number(call)).stream_handle;
        if ((handle == last && !known.empty()) || !known.insert(last = handle).second) continue;
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
      const Role role = roles_.empty() ? role_of(shape(i)) : roles_[number(events_.shape_of(i))];
      if (role == Role::collective) {
        const std::vector<uint32_t> work = launched_inside(i, end);
        for (const uint32_t launch : work) pair(i, launch);
        if (work.empty() && depth > 0) pending.push_back(i);
        if (work.empty() && depth == 0) add_later(i, {i});
      } else if (role == Role::group_start) {
        ++depth;
      } else if (role == Role::group_end) {
        if (depth > 0) --depth;
        if (depth == 0) {
          const std::vector<uint32_t> work = launched_inside(i, end);
          join_group(pending, work);
          if (work.empty()) add_later(i, std::move(pending));
          pending.clear();
        }
      }
    }
  }

  // What `call` leaves to a thread of NCCL's: it returns ncclInProgress where communicators do not
  // block.
  void add_later(uint32_t call, std::vector<uint32_t> collectives) {
    constexpr int32_t kInProgress = 7;
    if (collectives.empty() || shape(call).result != kInProgress) return;
    later_.push_back({events_.begin_of(call), INT64_MAX, std::move(collectives)});
  }

  // Such a thread launches after the call, and before the next one on the communicator: NCCL
  // refuses that until it is done. Each call has a thread of its own, which makes no calls of NCCL.
  void join_later() {
    if (later_.empty()) return;
    std::sort(later_.begin(), later_.end(),
              [](const Later& a, const Later& b) { return a.begin < b.begin; });
    std::unordered_map<uint64_t, int64_t> next;  // call on a communicator
    for (auto batch = later_.rbegin(); batch != later_.rend(); ++batch) {
      for (const uint32_t each : batch->collectives) {
        const auto found = next.find(shape(each).communicator);
        if (found != next.end()) batch->end = std::min(batch->end, found->second);
      }
      for (const uint32_t each : batch->collectives) next[shape(each).communicator] = batch->begin;
    }
    std::vector<Launch> launches = launches_of_nccl();
    for (const Later& batch : later_) {
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
      join_group(batch.collectives, work);
    }
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
    for (EventIndex work = event(launch).partner; work != EventIndex::none;
         work = process_.event(work).next_sibling) {
      const Kind kind = shape(number(work)).kind;
      if (kind != Kind::gpu_kernel && kind != Kind::gpu_copy) continue;
      process_.collective_kernels.push_back({static_cast<EventIndex>(collective), work});
    }
  }

  const Trace& trace_;
  Process& process_;
  EventTable& events_;
  std::vector<Side> sides_;  // by shape; empty: there are more shapes than events
  std::vector<Role> roles_;
  CallTable calls_;
  std::vector<Later> later_;
  std::vector<Pair> several_;  // call and each of its pieces of work, where there are several
  std::vector<Pair> rivals_;   // correlation id and each of its host events, likewise
  uint64_t budget_ =
      16 * process_.events.size() + 1;  // calls nest, so this is ample; bad files end
};

}  // namespace

void join_process(const Trace& trace, Process& process) { Joiner(trace, process).run(); }

}  // namespace gpuprof
