// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/operators.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "formats/views/slices.h"
#include "tools/analysis/code_place.h"
#include "tools/analysis/live_owners.h"
#include "tools/analysis/memory_owners.h"
#include "tools/analysis/named_rows.h"
#include "tools/analysis/walks.h"

namespace gpuprof::analysis {
namespace {

enum class ScopeKind : uint8_t { none, op, range, module, python };

ScopeKind scope_kind(Kind kind) {
  switch (kind) {
    case Kind::op: return ScopeKind::op;
    case Kind::annotation:
    case Kind::nvtx_range: return ScopeKind::range;
    case Kind::module: return ScopeKind::module;
    case Kind::python_function: return ScopeKind::python;
    default: return ScopeKind::none;
  }
}

// A range that is open where the walk along a thread is. `inner_*`: of what of its sort was called
// in it: operators and ranges, or modules.
struct Scope {
  EventIndex event;
  ScopeKind kind;
  int64_t begin, end;
  int64_t inner_cpu = 0;
  int64_t gpu = 0, inner_gpu = 0;
  int64_t compute = 0;  // of `gpu`, in compute kernels
  double inner_flop = 0;
  bool tensor_cores = false;  // some work of its own uses them
  bool of_forward = false;    // its GPU time goes to a module of the forward pass
  int64_t memory = 0, inner_memory = 0;
  StackIndex stack = StackIndex::none;  // of the first call in it that has one
  int64_t call_cpu = 0;                 // in calls of its own
  uint32_t inner = 0;                   // operators, ranges, and calls in it, not in those
  uint32_t twin = kNoTwin;              // the only one so far, if it has the same name

  static constexpr uint32_t kNoTwin = 0xffffffff;
};

// A call whose row waits for the end of the one around it: if that one has the same name and
// nothing else in it, the two are one.
struct Twin {
  Scope scope;
  double flop;
  bool again;
  std::string group;
};

bool same_sort(const Scope& a, const Scope& b) {
  return (a.kind == ScopeKind::module) == (b.kind == ScopeKind::module) &&
         a.kind != ScopeKind::python && b.kind != ScopeKind::python;
}

struct Sums {
  std::map<std::string, OperatorRow> operators, modules;
  std::map<std::pair<std::string, std::string>, OperatorRow> grouped;  // by name and what else
  std::map<std::pair<std::string, std::string>, PlaceRow> places;
  double flop = 0, seconds_at_peak = 0;
  bool peak_known = true;
  int64_t counted_ns = 0;  // of compute kernels of operators with known arithmetic
};

// The modules around an operator of the forward pass, innermost first.
using Modules = std::vector<std::string>;

class ProcessWalk {
 public:
  ProcessWalk(const Timeline& timeline, Grouping grouping, Sums& sums)
      : timeline_(timeline),
        trace_(*timeline.trace),
        process_(*timeline.process),
        grouping_(grouping),
        sums_(sums),
        owners_(*timeline.process) {
    begin_ = timeline.steps.front().begin;
    end_ = timeline.steps.back().end;
    for (const ForwardBackward& pair : process_.forward_backward) {
      forward_of_.emplace(number(pair.backward), number(pair.forward));
      modules_of_.try_emplace(number(pair.forward));
    }
  }

  void walk() {
    // The forward pass runs on the main thread; what belongs to it is looked up from others.
    const uint32_t main = gpuprof::main_thread(process_);
    for (const bool first : {true, false}) {
      for (uint32_t i = 0; i < timeline_.threads.size(); ++i) {
        if ((timeline_.threads[i].id == main) == first) walk(i);
      }
    }
  }

  const MemoryOwners& owners() const { return owners_; }

 private:
  void walk(uint32_t thread_index) {
    open_.clear();
    twins_.clear();
    const HostThread& thread = timeline_.threads[thread_index];
    const EventTable& events = process_.events;
    for (uint32_t i = thread.first_event; i < thread.end_event; ++i) {
      const int64_t end = events.end_of(i);
      while (!open_.empty() && open_.back().end < end) close();
      const Shape& shape = timeline_.shape(i);
      if (thread.calls.test(i)) take_call(timeline_.call(i, thread_index), shape);
      if (shape.kind == Kind::tensor || shape.kind == Kind::alloc) {
        note_owner(static_cast<EventIndex>(i), shape);
      }
      if (shape.kind == Kind::tensor && shape.device_type == kCudaDevice) take_memory(events[i]);
      const ScopeKind kind = scope_kind(shape.kind);
      if (kind == ScopeKind::none) continue;
      const Event event = events[i];
      const bool free_range = shape.kind == Kind::nvtx_range && process_.extra(event).address != 0;
      if (!free_range) open(event.index, event, kind);
    }
    while (!open_.empty()) close();
  }

  std::string_view name_of(EventIndex event) const {
    return trace_.text(trace_.shape(process_.event(event)).label);
  }

  bool inside(int64_t time) const { return time >= begin_ && time < end_; }

  // Steps are not among the operators.
  bool is_step(std::string_view name) const {
    if (name.starts_with("ProfilerStep#")) return true;
    const std::string_view source = timeline_.step_source();
    return source.starts_with("nvtx:") && name.starts_with(source.substr(5));
  }

  void open(EventIndex index, const Event& event, ScopeKind kind) {
    if (kind == ScopeKind::op) {
      if (const auto at = modules_of_.find(number(index)); at != modules_of_.end()) {
        for (auto scope = open_.rbegin(); scope != open_.rend(); ++scope) {
          if (scope->kind == ScopeKind::module) at->second.emplace_back(name_of(scope->event));
        }
      }
    }
    Scope scope{index, kind, event.begin, event.end};
    const bool named = kind == ScopeKind::op || kind == ScopeKind::range;
    if (named && is_step(name_of(index))) return;
    if (named) note_inner();
    open_.push_back(scope);
    if (named && inside(event.begin) && names_data_loading(name_of(index))) {
      add_place("data_loading", event.end - event.begin, StackIndex::none);
    }
  }

  Scope* innermost_operator() {
    const auto found = std::find_if(open_.rbegin(), open_.rend(), [](const Scope& each) {
      return each.kind == ScopeKind::op || each.kind == ScopeKind::range;
    });
    return found == open_.rend() ? nullptr : &*found;
  }

  // One more in the innermost operator, which so is more than the one in it.
  void note_inner() {
    Scope* const around = innermost_operator();
    if (around && ++around->inner > 1) add_twin(*around);
  }

  void add_twin(Scope& around) {
    if (around.twin == Scope::kNoTwin) return;
    const Twin& twin = twins_[around.twin];
    add_row(twin.scope, twin.flop, twin.again, twin.group);
    around.twin = Scope::kNoTwin;
  }

  // The one in it and it are one: what is not in operators is all that is in neither's.
  double merge_twin(Scope& scope) {
    const Twin& twin = twins_[scope.twin];
    scope.inner_cpu = twin.scope.inner_cpu;
    scope.inner_gpu = twin.scope.inner_gpu;
    scope.inner_memory = twin.scope.inner_memory;
    scope.call_cpu += twin.scope.call_cpu;
    return twin.flop;
  }

  void close() {
    Scope scope = open_.back();
    open_.pop_back();
    if (scope.kind == ScopeKind::python) return;
    const auto parent = std::find_if(open_.rbegin(), open_.rend(),
                                     [&](const Scope& each) { return same_sort(each, scope); });
    const double flop = flop_of_scope(scope);
    if (parent != open_.rend()) {
      parent->inner_cpu += scope.end - scope.begin;
      parent->gpu += scope.gpu;
      parent->inner_gpu += scope.gpu;
      parent->compute += scope.compute;
      parent->memory += scope.memory;
      parent->inner_memory += scope.memory;
      if (parent->stack == StackIndex::none) parent->stack = scope.stack;
      parent->inner_flop += scope.inner_flop > 0 ? scope.inner_flop : flop;
      parent->tensor_cores |= scope.tensor_cores;
    }
    if (!inside(scope.begin)) return;
    if (flop > 0 && timeline_.step_at(scope.begin)) add_arithmetic(scope, flop);
    if (scope.kind != ScopeKind::module) add_to_forward_module(scope);
    const double merged = scope.twin == Scope::kNoTwin ? 0 : merge_twin(scope);
    const bool again = std::any_of(open_.begin(), open_.end(), [&](const Scope& each) {
      return same_sort(each, scope) && name_of(each.event) == name_of(scope.event);
    });
    const std::string group = grouping_ != Grouping::name && scope.kind != ScopeKind::module
                                  ? group_of(scope)
                                  : std::string();
    if (scope.kind != ScopeKind::module && parent != open_.rend() && parent->inner == 1 &&
        inside(parent->begin) && name_of(parent->event) == name_of(scope.event)) {
      parent->twin = static_cast<uint32_t>(twins_.size());
      twins_.push_back({scope, flop + merged, again, group});
      return;
    }
    add_row(scope, flop + merged, again, group);
  }

  // The outermost operator whose arithmetic is known would count what it calls again: the innermost
  // does.
  double flop_of_scope(const Scope& scope) {
    if (scope.kind != ScopeKind::op || scope.inner_flop > 0 || scope.gpu == 0) return 0;
    const Event& event = process_.event(scope.event);
    const StringIndex args = process_.extra(event).args;
    const auto [at, fresh] = flop_.try_emplace({number(event.shape), number(args)}, 0.0);
    if (fresh) {
      const Shape& shape = trace_.shape(event);
      at->second =
          flop_of(trace_.text(shape.name), trace_.text(shape.input_dims), trace_.text(args));
    }
    return at->second;
  }

  OperatorRow& row_of(const Scope& scope) {
    const bool module = scope.kind == ScopeKind::module;
    OperatorRow*& row = rows_[number(process_.event(scope.event).shape)];
    if (!row) {
      row = &(module ? sums_.modules : sums_.operators)[std::string(name_of(scope.event))];
      row->kind = module ? "module" : scope.kind == ScopeKind::op ? "operator" : "range";
    }
    return *row;
  }

  // `again`: time in a call of the same name, further out, is counted there.
  static void add_call(const Scope& scope, double flop, bool again, OperatorRow& row) {
    ++row.count;
    const int64_t length = scope.end - scope.begin;
    if (!again) row.cpu_us += us(length);
    if (!again) row.gpu_us += us(scope.gpu);
    if (!again) row.memory_bytes += scope.memory;
    row.cpu_self_us += us(std::max<int64_t>(0, length - scope.inner_cpu));
    row.cpu_call_us += us(scope.call_cpu);
    row.gpu_self_us += us(scope.gpu - scope.inner_gpu);
    row.memory_self_bytes += scope.memory - scope.inner_memory;
    if (flop > 0) row.flop += flop;
  }

  void add_row(const Scope& scope, double flop, bool again, const std::string& group) {
    OperatorRow& row = row_of(scope);
    add_call(scope, flop, again, row);
    if (grouping_ == Grouping::name || scope.kind == ScopeKind::module) return;
    OperatorRow& grouped = sums_.grouped[{std::string(name_of(scope.event)), group}];
    grouped.kind = row.kind;
    add_call(scope, flop, again, grouped);
  }

  std::string group_of(const Scope& scope) {
    const Shape& shape = trace_.shape(process_.event(scope.event));
    switch (grouping_) {
      case Grouping::shape: return std::string(trace_.text(shape.input_dims));
      case Grouping::stack: return python_stack(shape, scope.stack);
      case Grouping::layer: return layer_of(scope);
      case Grouping::line: {
        CodePlace place = python_stack_place(trace_.text(shape.call_stack));
        if (!place.own) place = or_scope(native_place(process_.stacks, scope.stack));
        return place.text;
      }
      case Grouping::name: break;
    }
    return {};
  }

  // Lines of Python around a call, innermost first: its own stack, else that of a call in it, else
  // the functions that are open.
  std::string python_stack(const Shape& shape, StackIndex stack) const {
    constexpr size_t kMostFrames = 5;
    std::vector<std::string> frames;
    std::string_view listed = trace_.text(shape.call_stack);
    while (!listed.empty()) {
      const size_t end = std::min(listed.find(';'), listed.size());
      frames.push_back(python_place(listed.substr(0, end)).text);
      listed.remove_prefix(std::min(end + 1, listed.size()));
    }
    if (frames.empty() && stack != StackIndex::none) frames = python_frames(process_.stacks, stack);
    if (frames.empty()) {
      for (auto scope = open_.rbegin(); scope != open_.rend(); ++scope) {
        if (scope->kind != ScopeKind::python) continue;
        frames.push_back(python_place(name_of(scope->event)).text);
      }
    }
    std::string out;
    size_t count = 0;
    for (const std::string& frame : frames) {
      if (frame.empty() || ++count > kMostFrames) continue;
      out += (out.empty() ? "" : " < ") + frame;
    }
    return out;
  }

  std::string layer_of(const Scope& scope) const {
    for (auto each = open_.rbegin(); each != open_.rend(); ++each) {
      if (each->kind == ScopeKind::module) return std::string(name_of(each->event));
    }
    const auto forward_layer = [&](EventIndex event) -> std::string {
      const auto forward = forward_of_.find(number(event));
      if (forward == forward_of_.end()) return {};
      const auto modules = modules_of_.find(forward->second);
      if (modules == modules_of_.end() || modules->second.empty()) return {};
      return modules->second.front();
    };
    std::string found = forward_layer(scope.event);
    for (auto each = open_.rbegin(); found.empty() && each != open_.rend(); ++each) {
      found = forward_layer(each->event);
    }
    return found;
  }

  void add_arithmetic(const Scope& scope, double flop) {
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

  // The backward pass runs on another thread, outside of all modules: its work is that of the
  // module whose operator it belongs to.
  void add_to_forward_module(const Scope& scope) {
    const auto forward = forward_of_.find(number(scope.event));
    if (forward == forward_of_.end() || scope.gpu == 0) return;
    const bool within = std::any_of(open_.begin(), open_.end(), [&](const Scope& each) {
      return each.kind == ScopeKind::module || forward_of_.contains(number(each.event));
    });
    const Modules& modules = modules_of_[forward->second];
    if (within || modules.empty()) return;
    for (size_t i = 0; i < modules.size(); ++i) {
      OperatorRow& row = sums_.modules[modules[i]];
      if (i == 0) row.gpu_self_us += us(scope.gpu);
      row.gpu_us += us(scope.gpu);
      row.gpu_backward_us += us(scope.gpu);
    }
  }

  void take_memory(const Event& event) {
    const auto change = static_cast<int64_t>(process_.extra(event).bytes);
    bool to_operator = true, to_module = true;
    for (auto scope = open_.rbegin(); scope != open_.rend(); ++scope) {
      if (scope->kind == ScopeKind::python) continue;
      bool& wanted = scope->kind == ScopeKind::module ? to_module : to_operator;
      if (wanted) scope->memory += change;
      wanted = false;
    }
  }

  void take_call(const Call& call, const Shape& shape) {
    note_inner();
    if (Scope* const around = innermost_operator()) around->call_cpu += call.end - call.begin;
    if (!inside(call.begin)) return;
    int64_t gpu = 0, compute = 0;
    bool tensor_cores = false;
    timeline_.works_of(call, works_);
    for (const Work& work : works_) {
      gpu += work.end - work.begin;
      if (work.kind == WorkClass::compute) compute += work.end - work.begin;
      tensor_cores |=
          work.kind == WorkClass::compute && timeline_.traits_of(work.event).tensor_cores;
    }
    bool to_operator = gpu > 0, to_module = gpu > 0;
    for (auto scope = open_.rbegin(); scope != open_.rend(); ++scope) {
      if (scope->kind == ScopeKind::python) continue;
      bool& wanted = scope->kind == ScopeKind::module ? to_module : to_operator;
      if (!wanted) continue;
      scope->gpu += gpu;
      scope->compute += compute;
      scope->tensor_cores |= tensor_cores;
      wanted = false;
    }
    const StackIndex stack = process_.extras[process_.events.extra_of(call.event)].stack;
    if (stack != StackIndex::none) {
      const auto innermost = std::find_if(open_.rbegin(), open_.rend(), [](const Scope& each) {
        return each.kind == ScopeKind::op || each.kind == ScopeKind::range;
      });
      if (innermost != open_.rend() && innermost->stack == StackIndex::none) {
        innermost->stack = stack;
      }
    }
    if (call.kind == CallClass::synchronize) {
      add_place("synchronization", call.end - call.begin, stack);
    } else if (call.kind == CallClass::allocate) {
      add_place("allocation", call.end - call.begin, stack);
    } else if (shape.kind == Kind::copy) {
      add_place(call.blocking ? "synchronization" : "transfer", call.end - call.begin, stack);
    }
  }

  // Where the program is: by the native stack of the call, else by what is open around it.
  CodePlace place_here(StackIndex stack) { return or_scope(native_place(process_.stacks, stack)); }

  CodePlace or_scope(CodePlace found) {
    for (auto scope = open_.rbegin(); scope != open_.rend() && !found.own; ++scope) {
      const Shape& shape = trace_.shape(process_.event(scope->event));
      CodePlace place = scope->kind == ScopeKind::python
                            ? python_place(name_of(scope->event))
                            : python_stack_place(trace_.text(shape.call_stack));
      if (place.own || found.text.empty()) found = std::move(place);
    }
    return found;
  }

  void add_place(const char* kind, int64_t length, StackIndex stack) {
    const CodePlace place = place_here(stack);
    if (place.text.empty()) return;
    PlaceRow& row = sums_.places[{kind, place.text}];
    row.kind = kind;
    row.place = place.text;
    ++row.count;
    row.total_us += us(length);
  }

  // The outermost operator, and the innermost module around it.
  void note_owner(EventIndex event, const Shape& shape) {
    if (shape.kind == Kind::tensor && shape.device_type != kCudaDevice) return;
    std::string op, module, range;
    for (const Scope& scope : open_) {
      const std::string name(name_of(scope.event));
      if (scope.kind == ScopeKind::op && op.empty()) op = name;
      if (scope.kind == ScopeKind::module) module = name;
      if (scope.kind == ScopeKind::range) range = name;
    }
    std::string owner = op.empty() ? range : op;
    if (!module.empty()) owner += (owner.empty() ? "" : " in ") + module;
    const StackIndex stack = process_.extra(process_.event(event)).stack;
    const CodePlace place = memory_place(process_.stacks, stack);
    bool at_line = place.own;
    if (owner.empty()) {
      owner = or_scope(place).text;
      at_line = !owner.empty();
    } else if (place.own) {
      owner += " at " + place.text;
    }
    if (owner.empty()) owner = trace_.text(shape.name);
    owners_.note(event, owner, at_line);
  }

  static double us(int64_t ns) { return static_cast<double>(ns) / 1000; }

  const Timeline& timeline_;
  const Trace& trace_;
  const Process& process_;
  const Grouping grouping_;
  Sums& sums_;
  int64_t begin_, end_;
  std::vector<Scope> open_;
  std::vector<Twin> twins_;
  std::vector<Work> works_;                               // of a call
  std::unordered_map<uint32_t, uint32_t> forward_of_;     // by backward operator
  std::unordered_map<uint32_t, Modules> modules_of_;      // by forward operator
  std::unordered_map<uint32_t, OperatorRow*> rows_;       // by shape
  std::map<std::pair<uint32_t, uint32_t>, double> flop_;  // by shape and arguments
  MemoryOwners owners_;
};

std::vector<OperatorRow> sorted(std::map<std::string, OperatorRow>&& rows) {
  for (auto& [name, row] : rows) {
    if (row.kind.empty()) row.kind = "module";
  }
  return named_rows(std::move(rows),
                    [](const OperatorRow& row) { return std::pair(row.gpu_us, row.cpu_us); });
}

// Of kernels' time, by operators of known arithmetic: with less their sum says nothing of the job.
constexpr double kLeastCountedPct = 30;

Arithmetic arithmetic_of(std::span<const Timeline> timelines, const Sums& sums) {
  double steps = 0, step_ns = 0, compute_ns = 0;
  for (const Timeline& timeline : timelines) {
    for (const Step& step : timeline.steps) step_ns += static_cast<double>(step.end - step.begin);
    steps += static_cast<double>(timeline.steps.size());
    each_work(timeline, [&](const Work& work) {
      if (work.kind != WorkClass::compute || !timeline.step_at(timeline.issued_at(work))) return;
      compute_ns += static_cast<double>(work.end - work.begin);
    });
  }
  const double counted = static_cast<double>(sums.counted_ns);
  if (step_ns <= 0 || compute_ns <= 0 || 100 * counted < kLeastCountedPct * compute_ns) return {};
  return {sums.flop / steps, sums.flop / step_ns / 1000,
          sums.peak_known ? 100 * sums.seconds_at_peak * 1e9 / step_ns : 0,
          100 * counted / compute_ns};
}

}  // namespace

OperatorTables make_operator_tables(std::span<const Timeline> timelines, Grouping grouping) {
  OperatorTables out;
  Sums sums;
  for (const Timeline& timeline : timelines) {
    if (timeline.steps.empty()) continue;
    ProcessWalk walk(timeline, grouping, sums);
    walk.walk();
    const MemoryCurves curves = memory_curves(*timeline.trace, *timeline.process);
    std::vector<OwnerRow> owners = walk.owners().at_peak(curves);
    if (bytes_of(owners) > bytes_of(out.memory_owners)) out.memory_owners = std::move(owners);
    out.kept_memory[timeline.process] = walk.owners().kept(curves, timeline.steps);
  }
  // Without a whole step: what there was when memory ran out, or in the end.
  for (const Timeline& timeline : timelines) {
    for (const LiveMemory& live : timeline.process->live_memory) {
      if (out.memory_owners.empty()) out.memory_owners = live_owners(*timeline.process, live);
    }
  }
  out.operators = sorted(std::move(sums.operators));
  out.modules = sorted(std::move(sums.modules));
  for (auto& [key, row] : sums.grouped) {
    std::tie(row.name, row.by) = key;
    out.grouped.push_back(std::move(row));
  }
  std::stable_sort(out.grouped.begin(), out.grouped.end(),
                   [](const OperatorRow& a, const OperatorRow& b) {
                     return std::pair(a.gpu_us, a.cpu_us) > std::pair(b.gpu_us, b.cpu_us);
                   });
  for (auto& [key, row] : sums.places) out.places.push_back(std::move(row));
  std::stable_sort(out.places.begin(), out.places.end(),
                   [](const PlaceRow& a, const PlaceRow& b) { return a.total_us > b.total_us; });
  if (sums.flop > 0) out.arithmetic = arithmetic_of(timelines, sums);
  return out;
}

}  // namespace gpuprof::analysis
