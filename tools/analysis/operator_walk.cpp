// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/operator_walk.h"

#include <algorithm>

#include "formats/core/names.h"
#include "tools/analysis/code_place.h"
#include "tools/analysis/flops.h"

namespace gpuprof::analysis {
namespace {

double us(int64_t ns) { return static_cast<double>(ns) / 1000; }

// `again`: time in a call of the same name, further out, is counted there.
void add_call(const Scope& scope, double flop, bool again, OperatorRow& row) {
  ++row.count;
  const int64_t length = scope.end - scope.begin;
  if (!again) row.cpu_us += us(length);
  if (!again) row.gpu_us += us(scope.gpu);
  if (!again) row.memory_bytes += scope.memory;
  row.cpu_self_us += us(std::max<int64_t>(0, length - scope.inner_cpu));
  row.cpu_call_us += us(scope.call_cpu);
  row.cpu_wait_us += us(scope.wait_cpu);
  row.gpu_self_us += us(scope.gpu - scope.inner_gpu);
  row.memory_self_bytes += scope.memory - scope.inner_memory;
  if (flop > 0) row.flop += flop;
}

// What a scope is closed with goes to the one around it.
void add_to_parent(const Scope& scope, double flop, Scope& parent) {
  parent.inner_cpu += scope.end - scope.begin;
  parent.gpu += scope.gpu;
  parent.inner_gpu += scope.gpu;
  parent.compute += scope.compute;
  parent.memory += scope.memory;
  parent.inner_memory += scope.memory;
  if (parent.stack == StackIndex::none) parent.stack = scope.stack;
  parent.inner_flop += scope.inner_flop > 0 ? scope.inner_flop : flop;
  parent.tensor_cores |= scope.tensor_cores;
}

}  // namespace

OperatorWalk::OperatorWalk(const Timeline& timeline, Grouping grouping, OperatorSums& sums)
    : timeline_(timeline),
      trace_(*timeline.trace),
      process_(*timeline.process),
      grouping_(grouping),
      sums_(sums),
      begin_(timeline.steps.front().begin),
      end_(timeline.steps.back().end),
      open_(trace_, process_),
      forward_(process_),
      owners_(process_) {}

void OperatorWalk::walk() {
  // The forward pass runs where steps do; what belongs to it is looked up from others.
  for (const bool first : {true, false}) {
    for (uint32_t i = 0; i < timeline_.threads.size(); ++i) {
      if ((i == timeline_.main_thread) == first) walk(i);
    }
  }
}

void OperatorWalk::walk(uint32_t thread_index) {
  open_.clear();
  twins_.clear();
  const HostThread& thread = timeline_.threads[thread_index];
  const EventTable& events = process_.events;
  for (uint32_t i = thread.first_event; i < thread.end_event; ++i) {
    const int64_t end = events.end_of(i);
    while (!open_.empty() && open_.innermost().end < end) close();
    const Shape& shape = timeline_.shape(i);
    if (thread.calls.test(i)) take_call(timeline_.call(i, thread_index), shape);
    if (shape.kind == Kind::tensor || shape.kind == Kind::alloc) {
      note_owner(static_cast<EventIndex>(i), shape);
    }
    if (shape.kind == Kind::tensor && is_gpu_memory(shape.device_type)) {
      const auto change = static_cast<int64_t>(process_.extra(events[i]).bytes);
      open_.each_innermost([&](Scope& scope) { scope.memory += change; });
    }
    const ScopeKind kind = scope_kind(shape.kind);
    if (kind == ScopeKind::none) continue;
    const Event event = events[i];
    const bool free_range = shape.kind == Kind::nvtx_range && process_.extra(event).address != 0;
    if (!free_range) open(event.index, event, kind);
  }
  while (!open_.empty()) close();
}

// Steps are not among the operators.
bool OperatorWalk::is_step(std::string_view name) const {
  if (name.starts_with("ProfilerStep#")) return true;
  const std::string_view source = timeline_.step_source();
  return source.starts_with("nvtx:") && name.starts_with(source.substr(5));
}

void OperatorWalk::open(EventIndex index, const Event& event, ScopeKind kind) {
  if (kind == ScopeKind::op) forward_.note(index, open_);
  const bool named = kind == ScopeKind::op || kind == ScopeKind::range;
  const std::string_view name = open_.name_of(index);
  if (named && is_step(name)) return;
  if (named) note_inner();
  open_.push(Scope{index, kind, event.begin, event.end});
  if (named && inside(event.begin) && names_data_loading(name)) {
    add_place("data_loading", event.end - event.begin, StackIndex::none);
  }
}

// One more in the innermost operator, which so is more than the one in it.
void OperatorWalk::note_inner() {
  Scope* const around = open_.innermost_operator();
  if (around && ++around->inner > 1) add_twin(*around);
}

void OperatorWalk::add_twin(Scope& around) {
  if (around.twin == Scope::kNoTwin) return;
  const Twin& twin = twins_[around.twin];
  add_row(twin.scope, twin.flop, twin.again, twin.group);
  around.twin = Scope::kNoTwin;
}

// The one in it and it are one: what is not in operators is all that is in neither's.
double OperatorWalk::merge_twin(Scope& scope) {
  const Twin& twin = twins_[scope.twin];
  scope.inner_cpu = twin.scope.inner_cpu;
  scope.inner_gpu = twin.scope.inner_gpu;
  scope.inner_memory = twin.scope.inner_memory;
  scope.call_cpu += twin.scope.call_cpu;
  scope.wait_cpu += twin.scope.wait_cpu;
  return twin.flop;
}

void OperatorWalk::close() {
  Scope scope = open_.pop();
  if (scope.kind == ScopeKind::python) return;
  Scope* const parent = open_.innermost_like(scope);
  const double flop = flop_of_scope(scope);
  if (parent) add_to_parent(scope, flop, *parent);
  if (!inside(scope.begin)) return;
  if (flop > 0 && timeline_.step_at(scope.begin)) add_arithmetic(scope, flop);
  const bool module = scope.kind == ScopeKind::module;
  if (!module) add_to_forward_module(scope);
  const double merged = scope.twin == Scope::kNoTwin ? 0 : merge_twin(scope);
  const bool again = open_.has_same_name(scope);
  const std::string group =
      grouping_ != Grouping::name && !module ? group_of(scope) : std::string();
  if (!module && parent && parent->inner == 1 && inside(parent->begin) &&
      open_.name_of(parent->event) == open_.name_of(scope.event)) {
    parent->twin = static_cast<uint32_t>(twins_.size());
    twins_.push_back({scope, flop + merged, again, group});
    return;
  }
  add_row(scope, flop + merged, again, group);
}

// The outermost operator whose arithmetic is known would count what it calls again: the innermost
// does.
double OperatorWalk::flop_of_scope(const Scope& scope) {
  if (scope.kind != ScopeKind::op || scope.inner_flop > 0 || scope.gpu == 0) return 0;
  const Event& event = process_.event(scope.event);
  const StringIndex args = process_.extra(event).args;
  const auto [at, fresh] = flop_.try_emplace({number(event.shape), number(args)}, 0.0);
  if (fresh) {
    const Shape& shape = trace_.shape(event);
    at->second = flop_of(trace_.text(shape.name), trace_.text(shape.input_dims), trace_.text(args),
                         &convolutions());
  }
  return at->second;
}

const ConvolutionOutputs& OperatorWalk::convolutions() {
  if (!convolutions_) {
    convolutions_.emplace();
    for (const Shape& shape : trace_.shapes) {
      if (shape.kind != Kind::op) continue;
      convolutions_->add(trace_.text(shape.name), trace_.text(shape.input_dims));
    }
  }
  return *convolutions_;
}

OperatorRow& OperatorWalk::row_of(const Scope& scope) {
  const bool module = scope.kind == ScopeKind::module;
  OperatorRow*& row = rows_[number(process_.event(scope.event).shape)];
  if (!row) {
    row = &(module ? sums_.modules : sums_.operators)[std::string(open_.name_of(scope.event))];
    row->kind = module ? "module" : scope.kind == ScopeKind::op ? "operator" : "range";
  }
  return *row;
}

void OperatorWalk::add_row(const Scope& scope, double flop, bool again, const std::string& group) {
  OperatorRow& row = row_of(scope);
  add_call(scope, flop, again, row);
  if (grouping_ == Grouping::name || scope.kind == ScopeKind::module) return;
  OperatorRow& grouped = sums_.grouped[{std::string(open_.name_of(scope.event)), group}];
  grouped.kind = row.kind;
  add_call(scope, flop, again, grouped);
}

std::string OperatorWalk::group_of(const Scope& scope) const {
  const Shape& shape = trace_.shape(process_.event(scope.event));
  switch (grouping_) {
    case Grouping::shape: return std::string(trace_.text(shape.input_dims));
    case Grouping::stack: return open_.python_stack(shape, scope.stack);
    case Grouping::layer: return forward_.layer_of(scope, open_);
    case Grouping::line: {
      CodePlace place = python_stack_place(trace_.text(shape.call_stack));
      if (!place.own) place = open_.place_or_around(native_place(process_.stacks, scope.stack));
      return place.text;
    }
    case Grouping::name: break;
  }
  return {};
}

void OperatorWalk::add_arithmetic(const Scope& scope, double flop) {
  sums_.flop += flop;
  sums_.counted_ns += scope.compute;
  const Shape& shape = trace_.shape(process_.event(scope.event));
  const dump::Device* const device =
      timeline_.streams.empty() ? nullptr : device_of(process_, timeline_.streams[0].name.device);
  const Precision precision = precision_of(trace_.text(shape.input_types), scope.tensor_cores);
  const double peak = device ? peak_flops(device->name(), precision) : 0;
  if (peak > 0) {
    sums_.seconds_at_peak += flop / peak;
  } else {
    sums_.peak_known = false;
  }
}

// The backward pass's work is that of the module whose operator it belongs to.
void OperatorWalk::add_to_forward_module(const Scope& scope) {
  const ForwardModules::Modules* const modules = forward_.of_backward(scope.event);
  if (!modules || modules->empty() || scope.gpu == 0) return;
  const bool within = std::any_of(open_.all().begin(), open_.all().end(), [&](const Scope& each) {
    return each.kind == ScopeKind::module || forward_.of_backward(each.event);
  });
  if (within) return;
  for (size_t i = 0; i < modules->size(); ++i) {
    OperatorRow& row = sums_.modules[(*modules)[i]];
    if (i == 0) row.gpu_self_us += us(scope.gpu);
    row.gpu_us += us(scope.gpu);
    row.gpu_backward_us += us(scope.gpu);
  }
}

void OperatorWalk::add_work(const Call& call) {
  int64_t gpu = 0, compute = 0;
  bool tensor_cores = false;
  timeline_.works_of(call, works_);
  for (const Work& work : works_) {
    gpu += work.end - work.begin;
    if (work.kind != WorkClass::compute) continue;
    compute += work.end - work.begin;
    tensor_cores |= timeline_.traits_of(work.event).tensor_cores;
  }
  if (gpu <= 0) return;
  open_.each_innermost([&](Scope& scope) {
    scope.gpu += gpu;
    scope.compute += compute;
    scope.tensor_cores |= tensor_cores;
  });
}

void OperatorWalk::take_call(const Call& call, const Shape& shape) {
  note_inner();
  Scope* const around = open_.innermost_operator();
  const int64_t length = call.end - call.begin;
  const bool waits = call.kind == CallClass::synchronize || call.blocking;
  if (around) around->call_cpu += length;
  if (around && waits) around->wait_cpu += length;
  if (!inside(call.begin)) return;
  add_work(call);
  const StackIndex stack = process_.extras[process_.events.extra_of(call.event)].stack;
  if (around && around->stack == StackIndex::none) around->stack = stack;
  if (call.kind == CallClass::synchronize) {
    add_place("synchronization", length, stack);
  } else if (call.kind == CallClass::allocate) {
    add_place("allocation", length, stack);
  } else if (shape.kind == Kind::copy) {
    add_place(call.blocking ? "synchronization" : "transfer", length, stack);
  }
}

// Where the program is: by the native stack of the call, else by what is open around it.
void OperatorWalk::add_place(const char* kind, int64_t length, StackIndex stack) {
  const CodePlace place = open_.place_or_around(native_place(process_.stacks, stack));
  if (place.text.empty()) return;
  PlaceRow& row = sums_.places[{kind, place.text}];
  row.kind = kind;
  row.place = place.text;
  ++row.count;
  row.total_us += us(length);
}

void OperatorWalk::note_owner(EventIndex event, const Shape& shape) {
  if (shape.kind == Kind::tensor && !is_gpu_memory(shape.device_type)) return;
  std::string owner = open_.owner();
  const StackIndex stack = process_.extra(process_.event(event)).stack;
  const CodePlace place = memory_place(process_.stacks, stack);
  bool at_line = place.own;
  if (owner.empty()) {
    owner = open_.place_or_around(place).text;
    at_line = !owner.empty();
  } else if (place.own) {
    owner += " at " + place.text;
  }
  if (owner.empty()) owner = trace_.text(shape.name);
  owners_.note(event, owner, at_line);
}

}  // namespace gpuprof::analysis
