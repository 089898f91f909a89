// SPDX-License-Identifier: Apache-2.0
#include "formats/trace/backward_join.h"

#include <algorithm>
#include <unordered_map>

namespace gpuprof {
namespace {

constexpr uint32_t kNone = 0xffffffff;

// An operator that has a sequence number.
struct Numbered {
  int64_t begin;
  uint64_t sequence;
  uint32_t event;
  bool backward;
};

// The newest forward operator of a thread that has a number.
struct Candidate {
  uint32_t event, thread;
  uint32_t within;  // the autograd node around it; kNone
  uint32_t next;    // of another thread with the number; kNone
  bool used;
};

std::vector<Numbered> numbered_operators(const Trace& trace, const Process& process) {
  std::vector<Numbered> out;
  for (uint32_t i = 0; i < process.events.size(); ++i) {
    const Shape& shape = trace.shapes[process.events.shape_of(i)];
    if (shape.kind != Kind::op) continue;
    const Event event = process.events[i];
    const uint64_t sequence = process.extra(event).address;
    if (sequence) out.push_back({event.begin, sequence, i, shape.value != 0});
  }
  std::sort(out.begin(), out.end(), [](const Numbered& a, const Numbered& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.event < b.event;
  });
  return out;
}

class BackwardJoin {
 public:
  explicit BackwardJoin(const Process& process) : process_(process) {}

  void forward(const Numbered& each) {
    const uint32_t thread = thread_of(each.event);
    const std::vector<uint32_t>& nodes = open_nodes(thread, each.begin);
    const uint32_t within = nodes.empty() ? kNone : nodes.back();
    uint32_t& first = first_.try_emplace(each.sequence, kNone).first->second;
    for (uint32_t at = first; at != kNone; at = candidates_[at].next) {
      if (candidates_[at].thread != thread) continue;
      candidates_[at] = {each.event, thread, within, candidates_[at].next, false};
      return;
    }
    candidates_.push_back({each.event, thread, within, first, false});
    first = static_cast<uint32_t>(candidates_.size() - 1);
  }

  // kNone: not known.
  uint32_t forward_of(const Numbered& node) {
    const uint32_t thread = thread_of(node.event);
    std::vector<uint32_t>& nodes = open_nodes(thread, node.begin);
    const uint32_t chosen = choose(node.sequence, thread, nodes);
    nodes.push_back(node.event);
    if (chosen == kNone) return kNone;
    candidates_[chosen].used = true;
    return candidates_[chosen].event;
  }

 private:
  uint32_t thread_of(uint32_t event) const {
    return number(process_.lane_index(process_.events[event]));
  }

  // Autograd nodes of a thread that are open at a time, outermost first.
  std::vector<uint32_t>& open_nodes(uint32_t thread, int64_t time) {
    std::vector<uint32_t>& nodes = nodes_[thread];
    while (!nodes.empty() && process_.events.end_of(nodes.back()) <= time) nodes.pop_back();
    return nodes;
  }

  uint32_t choose(uint64_t sequence, uint32_t thread, const std::vector<uint32_t>& nodes) const {
    const auto found = first_.find(sequence);
    if (found == first_.end()) return kNone;
    uint32_t own = kNone, others = 0, unused = 0, other = kNone, fresh = kNone;
    for (uint32_t at = found->second; at != kNone; at = candidates_[at].next) {
      if (candidates_[at].thread == thread) {
        own = at;
        continue;
      }
      ++others, other = at;
      if (!candidates_[at].used) ++unused, fresh = at;
    }
    if (others == 0) return own;
    if (own != kNone) {
      const uint32_t within = candidates_[own].within;
      if (within == kNone) return kNone;
      if (std::find(nodes.begin(), nodes.end(), within) != nodes.end()) return own;
    }
    if (others == 1) return other;
    return unused == 1 ? fresh : kNone;
  }

  const Process& process_;
  std::unordered_map<uint64_t, uint32_t> first_;  // of candidates_, by sequence number
  std::vector<Candidate> candidates_;
  std::unordered_map<uint32_t, std::vector<uint32_t>> nodes_;  // by thread
};

}  // namespace

std::vector<std::pair<EventIndex, EventIndex>> backward_pairs(const Trace& trace,
                                                              const Process& process) {
  std::vector<std::pair<EventIndex, EventIndex>> out;
  BackwardJoin join(process);
  for (const Numbered& each : numbered_operators(trace, process)) {
    if (!each.backward) {
      join.forward(each);
    } else if (const uint32_t forward = join.forward_of(each); forward != kNone) {
      out.emplace_back(static_cast<EventIndex>(forward), static_cast<EventIndex>(each.event));
    }
  }
  return out;
}

}  // namespace gpuprof
