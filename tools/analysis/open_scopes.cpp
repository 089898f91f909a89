// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/open_scopes.h"

#include <algorithm>

namespace gpuprof::analysis {

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

bool same_sort(const Scope& a, const Scope& b) {
  return (a.kind == ScopeKind::module) == (b.kind == ScopeKind::module) &&
         a.kind != ScopeKind::python && b.kind != ScopeKind::python;
}

Scope OpenScopes::pop() {
  const Scope scope = open_.back();
  open_.pop_back();
  return scope;
}

Scope* OpenScopes::innermost_operator() {
  const auto found = std::find_if(open_.rbegin(), open_.rend(), [](const Scope& each) {
    return each.kind == ScopeKind::op || each.kind == ScopeKind::range;
  });
  return found == open_.rend() ? nullptr : &*found;
}

Scope* OpenScopes::innermost_like(const Scope& scope) {
  const auto found = std::find_if(open_.rbegin(), open_.rend(),
                                  [&](const Scope& each) { return same_sort(each, scope); });
  return found == open_.rend() ? nullptr : &*found;
}

std::string_view OpenScopes::name_of(EventIndex event) const {
  return trace_.text(trace_.shape(process_.event(event)).label);
}

bool OpenScopes::has_same_name(const Scope& scope) const {
  return std::any_of(open_.begin(), open_.end(), [&](const Scope& each) {
    return same_sort(each, scope) && name_of(each.event) == name_of(scope.event);
  });
}

std::vector<std::string> OpenScopes::modules() const {
  std::vector<std::string> out;
  for (auto scope = open_.rbegin(); scope != open_.rend(); ++scope) {
    if (scope->kind == ScopeKind::module) out.emplace_back(name_of(scope->event));
  }
  return out;
}

CodePlace OpenScopes::place_or_around(CodePlace found) const {
  for (auto scope = open_.rbegin(); scope != open_.rend() && !found.own; ++scope) {
    const Shape& shape = trace_.shape(process_.event(scope->event));
    CodePlace place = scope->kind == ScopeKind::python
                          ? python_place(name_of(scope->event))
                          : python_stack_place(trace_.text(shape.call_stack));
    if (place.own || found.text.empty()) found = std::move(place);
  }
  return found;
}

std::string OpenScopes::python_stack(const Shape& shape, StackIndex stack) const {
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

std::string OpenScopes::owner() const {
  std::string op, module, range;
  for (const Scope& scope : open_) {
    const std::string name(name_of(scope.event));
    if (scope.kind == ScopeKind::op && op.empty()) op = name;
    if (scope.kind == ScopeKind::module) module = name;
    if (scope.kind == ScopeKind::range) range = name;
  }
  std::string out = op.empty() ? range : op;
  if (!module.empty()) out += (out.empty() ? "" : " in ") + module;
  return out;
}

ForwardModules::ForwardModules(const Process& process) {
  for (const ForwardBackward& pair : process.forward_backward) {
    forward_of_.emplace(number(pair.backward), number(pair.forward));
    modules_of_.try_emplace(number(pair.forward));
  }
}

void ForwardModules::note(EventIndex op, const OpenScopes& around) {
  const auto at = modules_of_.find(number(op));
  if (at == modules_of_.end()) return;
  for (std::string& module : around.modules()) at->second.push_back(std::move(module));
}

const ForwardModules::Modules* ForwardModules::of_backward(EventIndex op) const {
  const auto forward = forward_of_.find(number(op));
  return forward == forward_of_.end() ? nullptr : &modules_of_.at(forward->second);
}

std::string ForwardModules::layer_of(const Scope& scope, const OpenScopes& around) const {
  if (const auto modules = around.modules(); !modules.empty()) return modules.front();
  const auto of_forward = [&](EventIndex event) -> std::string {
    const Modules* const modules = of_backward(event);
    return modules && !modules->empty() ? modules->front() : std::string();
  };
  std::string found = of_forward(scope.event);
  for (auto each = around.all().rbegin(); found.empty() && each != around.all().rend(); ++each) {
    found = of_forward(each->event);
  }
  return found;
}

}  // namespace gpuprof::analysis
