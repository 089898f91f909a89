// SPDX-License-Identifier: Apache-2.0
// One walk along the threads of a process: what each operator, range and module took, and which
// lines waited. operators.h makes tables of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tools/analysis/flops.h"
#include "tools/analysis/memory_owners.h"
#include "tools/analysis/open_scopes.h"
#include "tools/analysis/operators.h"
#include "tools/analysis/timeline.h"

namespace gpuprof::analysis {

// Over all processes of a report.
struct OperatorSums {
  std::map<std::string, OperatorRow> operators, modules;
  std::map<std::pair<std::string, std::string>, OperatorRow> grouped;  // by name and what else
  std::map<std::pair<std::string, std::string>, PlaceRow> places;
  double flop = 0, seconds_at_peak = 0;
  bool peak_known = true;
  int64_t counted_ns = 0;  // of compute kernels of operators with known arithmetic
};

// The timeline must have steps. Adds to `sums`, which must outlive it.
class OperatorWalk {
 public:
  OperatorWalk(const Timeline& timeline, Grouping grouping, OperatorSums& sums);

  void walk();
  const MemoryOwners& owners() const { return owners_; }

 private:
  // A call whose row waits for the end of the one around it: if that one has the same name and
  // nothing else in it, the two are one.
  struct Twin {
    Scope scope;
    double flop;
    bool again;
    std::string group;
  };

  void walk(uint32_t thread_index);
  void open(EventIndex index, const Event& event, ScopeKind kind);
  void close();
  void take_call(const Call& call, const Shape& shape);
  void add_work(const Call& call);
  void note_owner(EventIndex event, const Shape& shape);

  bool inside(int64_t time) const { return time >= begin_ && time < end_; }
  bool is_step(std::string_view name) const;
  void note_inner();
  void add_twin(Scope& around);
  double merge_twin(Scope& scope);
  double flop_of_scope(const Scope& scope);
  const ConvolutionOutputs& convolutions();
  void add_arithmetic(const Scope& scope, double flop);
  void add_to_forward_module(const Scope& scope);
  std::string group_of(const Scope& scope) const;
  OperatorRow& row_of(const Scope& scope);
  void add_row(const Scope& scope, double flop, bool again, const std::string& group);
  void add_place(const char* kind, int64_t length, StackIndex stack);

  const Timeline& timeline_;
  const Trace& trace_;
  const Process& process_;
  const Grouping grouping_;
  OperatorSums& sums_;
  const int64_t begin_, end_;
  OpenScopes open_;
  ForwardModules forward_;
  std::vector<Twin> twins_;
  std::vector<Work> works_;                               // of a call
  std::unordered_map<uint32_t, OperatorRow*> rows_;       // by shape
  std::map<std::pair<uint32_t, uint32_t>, double> flop_;  // by shape and arguments
  std::optional<ConvolutionOutputs> convolutions_;
  MemoryOwners owners_;
};

}  // namespace gpuprof::analysis
