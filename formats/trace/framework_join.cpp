// SPDX-License-Identifier: Apache-2.0
#include "formats/trace/framework_join.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "formats/trace/backward_join.h"

namespace gpuprof {
namespace {

bool is_range_of_program(Kind kind) { return kind == Kind::op || kind == Kind::annotation; }

// Whether an event may have an operator that called or launched it.
bool may_belong(Kind kind) {
  return (is_call_kind(kind) && kind != Kind::collective) ||
         (is_gpu_kind(kind) && kind != Kind::gpu_annotation && kind != Kind::overhead);
}

class Framework {
 public:
  Framework(const Trace& trace, Process& process) : trace_(trace), process_(process) {}

  void run() {
    for (const Lane& lane : process_.lanes) {
      if (lane.type != LaneType::thread) continue;
      if (lane.may_have(Kind::op, Kind::annotation, Kind::tensor)) number_ranges(lane);
      if (lane.may_have(Kind::module)) number_modules(lane);
    }
    size_tensors();
    if (operators_ == 0) return;
    for (const Lane& lane : process_.lanes) {
      if (lane.type == LaneType::thread) join_by_nesting(lane);
    }
    join_gpu_work();
    join_backward();
  }

 private:
  const Shape& shape(uint32_t event) const {
    return trace_.shapes[process_.events.shape_of(event)];
  }

  EventExtra& own_extra(uint32_t event) {
    uint32_t extra = process_.events[event].extra;
    if (extra == 0) {
      extra = static_cast<uint32_t>(process_.extras.size());
      process_.events.set_extra(event, extra);
      process_.extras.push_back({});
    }
    return process_.extras[extra];
  }

  void number_ranges(const Lane& lane) {
    for (uint32_t i = lane.first_event; i < lane.first_event + lane.event_count; ++i) {
      const Shape& s = shape(i);
      if (is_range_of_program(s.kind)) {
        EventExtra& extra = own_extra(i);
        extra.value = extra.bytes = ++operators_;
      } else if (s.kind == Kind::tensor) {
        tensors_.push_back(i);
      }
    }
  }

  // Changes are signed here. The CPU's allocator does not say how much it takes back: as much as it
  // gave there.
  void size_tensors() {
    const auto earlier = [this](uint32_t a, uint32_t b) {
      return process_.events[a].begin < process_.events[b].begin;
    };
    std::stable_sort(tensors_.begin(), tensors_.end(), earlier);
    std::unordered_map<uint64_t, uint64_t> given;
    for (const uint32_t i : tensors_) {
      EventExtra& extra = own_extra(i);
      if (shape(i).value == 0) {
        given[extra.address] = extra.bytes;
        continue;
      }
      const auto found = given.find(extra.address);
      if (extra.bytes == 0 && found != given.end()) extra.bytes = found->second;
      if (found != given.end()) given.erase(found);
      extra.bytes = ~extra.bytes + 1;
    }
  }

  void number_modules(const Lane& lane) {
    std::vector<uint32_t> open;
    for (uint32_t i = lane.first_event; i < lane.first_event + lane.event_count; ++i) {
      if (shape(i).kind != Kind::module) continue;
      const int64_t end = process_.events.end_of(i);
      while (!open.empty() && process_.events.end_of(open.back()) < end) open.pop_back();
      const uint64_t parent = open.empty() ? 0 : process_.extra(process_.events[open.back()]).value;
      EventExtra& extra = own_extra(i);
      extra.value = ++modules_;
      extra.address2 = extra.address;  // the number of the object
      extra.address = parent;
      open.push_back(i);
    }
  }

  // Calls belong to the innermost range of the program around them.
  void join_by_nesting(const Lane& lane) {
    std::vector<uint32_t> open;
    for (uint32_t i = lane.first_event; i < lane.first_event + lane.event_count; ++i) {
      const int64_t end = process_.events.end_of(i);
      while (!open.empty() && process_.events.end_of(open.back()) < end) open.pop_back();
      const Kind kind = shape(i).kind;
      if (is_range_of_program(kind)) {
        open.push_back(i);
      } else if (may_belong(kind) && !open.empty()) {
        process_.operators.set(i, static_cast<EventIndex>(open.back()));
        if (shape(i).flags & kFlagCaptured) {
          captured_[{lane.thread_id, process_.events[i].begin}] = open.back();
        }
      }
    }
  }

  // GPU work belongs to the operator of the call that caused it; that of a graph to the operator
  // around the captured call, where the window has that, else to the one around the launch.
  void join_gpu_work() {
    for (uint32_t i = 0; i < process_.events.size(); ++i) {
      const Event event = process_.events[i];
      if (event.partner == EventIndex::none || !is_gpu_kind(shape(i).kind)) continue;
      const GraphNode* const node = process_.graph_node(shape(i), process_.extra(event));
      if (!node) continue;
      const auto call = captured_.find({node->thread, node->captured});
      if (call != captured_.end()) {
        process_.operators.set(i, static_cast<EventIndex>(call->second));
      }
    }
  }

  void join_backward() {
    for (const auto& [forward, backward] : backward_pairs(trace_, process_)) {
      const Event cause = process_.event(forward);
      own_extra(number(backward)).address2 = process_.lane(cause).thread_id;
      process_.forward_backward.push_back({forward, backward, 0});
    }
    std::stable_sort(process_.forward_backward.begin(), process_.forward_backward.end(),
                     [](const ForwardBackward& a, const ForwardBackward& b) {
                       return number(a.forward) < number(b.forward);
                     });
    uint64_t id = 0;
    for (ForwardBackward& pair : process_.forward_backward) pair.id = ++id;
  }

  const Trace& trace_;
  Process& process_;
  std::vector<uint32_t> tensors_;
  // Thread and begin of a call that was captured into a graph, and the range around it.
  std::map<std::pair<uint64_t, int64_t>, uint32_t> captured_;
  uint64_t operators_ = 0, modules_ = 0;
};

}  // namespace

void join_framework(const Trace& trace, Process& process) { Framework(trace, process).run(); }

}  // namespace gpuprof
