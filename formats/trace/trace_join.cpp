// SPDX-License-Identifier: Apache-2.0
#include "formats/trace/trace_join.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_map>

#include "formats/trace/collective_kernels.h"

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
    for (const Shape& shape : trace.shapes) sides_.push_back(side_of(shape));
  }

  void run() {
    join_correlations();
    join_streams();
  }

 private:
  static Side side_of(const Shape& shape) {
    if (shape.kind == Kind::overhead) return Side::none;
    return is_gpu_kind(shape.kind) ? Side::gpu : Side::host;
  }

  const Shape& shape(uint32_t event) const { return trace_.shapes[events_.shape_of(event)]; }
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

  const Trace& trace_;
  Process& process_;
  EventTable& events_;
  std::vector<Side> sides_;  // by shape; empty: there are more shapes than events
  CallTable calls_;
  std::vector<Pair> several_;  // call and each of its pieces of work, where there are several
  std::vector<Pair> rivals_;   // correlation id and each of its host events, likewise
};

}  // namespace

void join_process(const Trace& trace, Process& process) {
  Joiner(trace, process).run();
  join_collectives(trace, process);
}

}  // namespace gpuprof
