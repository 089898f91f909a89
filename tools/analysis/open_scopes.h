// SPDX-License-Identifier: Apache-2.0
// What is open around a point of a thread: operators, ranges, modules, functions of Python. A walk
// along the thread keeps it (operator_walk.h). Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/trace/trace.h"
#include "tools/analysis/code_place.h"

namespace gpuprof::analysis {

enum class ScopeKind : uint8_t { none, op, range, module, python };

ScopeKind scope_kind(Kind kind);

// One that is open, and what is known of it by now. Times in ns, memory in bytes. `inner_*`: of
// what of its sort was called in it: operators and ranges, or modules.
struct Scope {
  EventIndex event;
  ScopeKind kind;
  int64_t begin, end;
  int64_t inner_cpu = 0;
  int64_t gpu = 0, inner_gpu = 0;
  int64_t compute = 0;  // of `gpu`, in compute kernels
  double inner_flop = 0;
  bool tensor_cores = false;  // some work of its own uses them
  int64_t memory = 0, inner_memory = 0;
  StackIndex stack = StackIndex::none;  // of the first call in it that has one
  int64_t call_cpu = 0;                 // in calls of its own
  int64_t wait_cpu = 0;                 // of `call_cpu`, in those that wait for the GPU
  uint32_t inner = 0;                   // operators, ranges, and calls in it, not in those
  uint32_t twin = kNoTwin;              // the only one so far, if it has the same name

  static constexpr uint32_t kNoTwin = 0xffffffff;
};

// Whether both are modules, or neither; functions of Python are of no sort.
bool same_sort(const Scope& a, const Scope& b);

class OpenScopes {
 public:
  OpenScopes(const Trace& trace, const Process& process) : trace_(trace), process_(process) {}

  bool empty() const { return open_.empty(); }
  void clear() { open_.clear(); }
  void push(const Scope& scope) { open_.push_back(scope); }
  Scope pop();
  const Scope& innermost() const { return open_.back(); }
  // Outermost first.
  const std::vector<Scope>& all() const { return open_; }

  // Null: none is open. Valid until the next push.
  Scope* innermost_operator();
  Scope* innermost_like(const Scope& scope);
  // What `add` does to a scope, for the innermost operator or range, and for the innermost module.
  template <typename Add>
  void each_innermost(Add add);

  std::string_view name_of(EventIndex event) const;
  bool has_same_name(const Scope& scope) const;
  // Innermost first.
  std::vector<std::string> modules() const;

  // `found`, unless that is not the program's own code and a scope has a line that is.
  CodePlace place_or_around(CodePlace found) const;
  // Lines of Python around a call, innermost first: its own stack, else that of a call in it, else
  // the functions that are open. At most 5, " < " between them.
  std::string python_stack(const Shape& shape, StackIndex stack) const;
  // The outermost operator, else the innermost range, and the innermost module; empty: none is
  // open.
  std::string owner() const;

 private:
  const Trace& trace_;
  const Process& process_;
  std::vector<Scope> open_;
};

template <typename Add>
void OpenScopes::each_innermost(Add add) {
  bool to_operator = true, to_module = true;
  for (auto scope = open_.rbegin(); scope != open_.rend(); ++scope) {
    if (scope->kind == ScopeKind::python) continue;
    bool& wanted = scope->kind == ScopeKind::module ? to_module : to_operator;
    if (wanted) add(*scope);
    wanted = false;
  }
}

// The modules around the operators of the forward pass, for those of the backward pass: these run
// on another thread, outside of all modules.
class ForwardModules {
 public:
  // The modules of one operator, innermost first.
  using Modules = std::vector<std::string>;

  explicit ForwardModules(const Process& process);

  // An operator that begins inside of `around`.
  void note(EventIndex op, const OpenScopes& around);
  // Null: it is no operator of the backward pass, as far as is recorded. May be empty.
  const Modules* of_backward(EventIndex op) const;
  // The innermost module around a scope that is closed, in `around`; empty: none.
  std::string layer_of(const Scope& scope, const OpenScopes& around) const;

 private:
  std::unordered_map<uint32_t, uint32_t> forward_of_;  // by backward operator
  std::unordered_map<uint32_t, Modules> modules_of_;   // by forward operator
};

}  // namespace gpuprof::analysis
