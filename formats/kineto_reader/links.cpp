// SPDX-License-Identifier: Apache-2.0
#include "formats/kineto_reader/links.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "formats/kineto_reader/categories.h"

namespace gpuprof::kineto {
namespace {

bool is_range_of_program(Kind kind) { return kind == Kind::op || kind == Kind::annotation; }

// Whether an event may have an operator that called or launched it.
bool may_belong(Kind kind) {
  if (is_call_kind(kind)) return kind != Kind::collective;
  return is_gpu_kind(kind) && kind != Kind::gpu_annotation && kind != Kind::overhead;
}

}  // namespace

void Links::join_by_id() {
  struct Named {
    uint64_t id;
    uint32_t event;
    bool annotation;
  };
  std::vector<Named> named;
  const EventTable& events = process_.events;
  for (uint32_t i = 0; i < events.size(); ++i) {
    const Kind kind = trace_.shape(events[i]).kind;
    if (!is_range_of_program(kind)) continue;
    const uint64_t id = process_.extra(events[i]).value;
    if (id) named.push_back({id, i, kind == Kind::annotation});
  }
  const auto before = [](const Named& a, const Named& b) {
    return std::tuple(a.id, a.annotation, a.event) < std::tuple(b.id, b.annotation, b.event);
  };
  std::sort(named.begin(), named.end(), before);
  external_ids_.each([&](uint32_t event, uint64_t id) {
    const auto at = std::lower_bound(named.begin(), named.end(), id,
                                     [](const Named& a, uint64_t wanted) { return a.id < wanted; });
    if (at == named.end() || at->id != id) return give_back(event, id);
    const auto op = static_cast<EventIndex>(at->event);
    if (process_.operator_of(events[event]) != op) process_.operators.set(event, op);
  });
}

void Links::give_back(uint32_t event, uint64_t id) {
  EventExtra extra = process_.extra(process_.events[event]);
  std::string args = fmt::format("\"External id\":{}", id);
  if (extra.args != StringIndex::empty) {
    args += ',';
    args += trace_.text(extra.args);
  }
  extra.args = trace_.strings.intern(args);
  process_.events.set_extra(event, static_cast<uint32_t>(process_.extras.size()));
  process_.extras.push_back(extra);
}

// Calls without an id belong to the innermost range of the program around them.
void Links::join_by_nesting(const Lane& lane) {
  std::vector<uint32_t> open;
  const uint32_t end = lane.first_event + lane.event_count;
  for (uint32_t i = lane.first_event; i < end; ++i) {
    const Event& event = process_.events[i];
    while (!open.empty() && process_.events.end_of(open.back()) < event.end) open.pop_back();
    const Kind kind = trace_.shape(event).kind;
    if (is_range_of_program(kind)) {
      open.push_back(i);
    } else if (may_belong(kind) && process_.operators[i] == EventIndex::none && !open.empty()) {
      process_.operators.set(i, static_cast<EventIndex>(open.back()));
    }
  }
}

void Links::join_operators() {
  const EventTable& events = process_.events;
  const bool any = std::any_of(events.begin(), events.end(), [this](const Event& event) {
    return is_range_of_program(trace_.shape(event).kind);
  });
  if (!any) {
    external_ids_.each([this](uint32_t event, uint64_t id) { give_back(event, id); });
    return;
  }
  join_by_id();
  external_ids_ = {};
  for (const Lane& lane : process_.lanes) {
    if (lane.type == LaneType::thread) join_by_nesting(lane);
  }
  // Of calls in rows that are no thread's, behind what they launched.
  for (uint32_t i = 0; i < events.size(); ++i) {
    const EventIndex call = events.partner_of(i);
    const bool behind = call != EventIndex::none && number(call) > i;
    if (!behind || process_.operators[i] != EventIndex::none) continue;
    if (is_gpu_kind(trace_.shape(events[i]).kind)) {
      process_.operators.set(i, process_.operators[number(call)]);
    }
  }
}

// Of operators that begin at a time, the innermost.
EventIndex Links::operator_at(uint32_t lane, int64_t time) const {
  const auto events = process_.lane_events(process_.lanes[lane]);
  const auto after =
      std::upper_bound(events.begin(), events.end(), time,
                       [](int64_t wanted, const Event& event) { return wanted < event.begin; });
  for (auto at = after; at != events.begin();) {
    --at;
    const Event event = *at;
    if (event.begin != time) break;
    if (is_range_of_program(trace_.shape(event).kind)) return event.index;
  }
  return EventIndex::none;
}

void Links::join_flows(std::span<const FlowEnd> flows) {
  std::map<std::pair<uint32_t, uint64_t>, EventIndex> starts;
  for (const FlowEnd& flow : flows) {
    if (!flow.start) continue;
    const EventIndex op = operator_at(flow.row, flow.time);
    if (op != EventIndex::none) starts.emplace(std::pair(flow.category, flow.id), op);
  }
  for (const FlowEnd& flow : flows) {
    if (flow.start) continue;
    const auto start = starts.find({flow.category, flow.id});
    if (start == starts.end()) continue;
    const EventIndex op = operator_at(flow.row, flow.time);
    if (op != EventIndex::none) process_.forward_backward.push_back({start->second, op, flow.id});
  }
  std::stable_sort(process_.forward_backward.begin(), process_.forward_backward.end(),
                   [](const ForwardBackward& a, const ForwardBackward& b) {
                     return number(a.forward) < number(b.forward);
                   });
}

void Links::find_steps() {
  std::map<uint64_t, Step> steps;
  std::set<std::pair<uint64_t, int64_t>> again;  // numbers and begins of a later cycle's
  bool gpu = false;
  for (const Event& event : process_.events) {
    const Shape& shape = trace_.shape(event);
    gpu = gpu || is_stream_work(shape.kind);
    if (!is_range_of_program(shape.kind)) continue;
    const std::optional<uint64_t> number = step_number(trace_.text(shape.name));
    if (!number) continue;
    const auto [known, fresh] = steps.emplace(*number, Step{*number, event.begin, event.end});
    const Step& step = known->second;
    if (!fresh && (event.begin >= step.end || event.end <= step.begin))
      again.insert({*number, event.begin});
  }
  if (!again.empty()) {
    trace_.notes.push_back(fmt::format(
        "{}: {} more {} the number of an earlier one, and are left out; give each cycle of the "
        "profiler a file of its own",
        process_.path, again.size(), again.size() == 1 ? "step has" : "steps have"));
  }
  process_.steps_are_events = process_.steps.empty() && !steps.empty();
  if (process_.steps_are_events) {
    for (const auto& [number, step] : steps) process_.steps.push_back(step);
  }
  if (!process_.steps.empty()) process_.step_source = "ProfilerStep";
  if (!gpu) process_.gpu_times_missing = "the trace has no GPU events";
}

}  // namespace gpuprof::kineto
