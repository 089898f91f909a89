// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "tools/analysis/statistics.h"

namespace gpuprof::analysis {
namespace {

constexpr double kWorstPart = 0.03;  // of the workers: the paper's 3 %

bool is_compute(OperationKind kind) { return kind <= OperationKind::backward_compute; }
bool is_of_data_ranks(OperationKind kind) { return kind >= OperationKind::params_gather; }
OperationKind plus(OperationKind kind, int by) {
  return static_cast<OperationKind>(static_cast<int>(kind) + by);
}

using Typical = std::array<double, kOperationKinds>;
// Whether an operation is set to the typical one.
using Change = std::function<bool(const Operation&)>;

// The dependencies of one step's operations. Each has two nodes: it begins when those it depends on
// have ended, and ends its own length after all that take part have begun.
class StepGraph {
 public:
  StepGraph(const std::vector<Operation>& operations, const std::vector<PipelineWorker>& workers)
      : operations_(operations), workers_(workers), after_(operations.size()) {
    std::stable_sort(operations_.begin(), operations_.end(),
                     [](const Operation& a, const Operation& b) { return a.begin < b.begin; });
    for (uint32_t i = 0; i < operations_.size(); ++i) index_[key_of(operations_[i])] = i;
    find_groups();
    find_order_on_streams();
    find_data_dependencies();
    find_order();
    find_lengths();
  }

  const std::vector<Operation>& operations() const { return operations_; }
  double length(size_t i) const { return lengths_[i]; }
  double recorded() const {
    int64_t begin = INT64_MAX, end = INT64_MIN;
    for (const Operation& each : operations_) {
      begin = std::min(begin, each.begin);
      end = std::max(end, each.end);
    }
    return operations_.empty() ? 0 : static_cast<double>(end - begin);
  }

  double simulate(const Typical& typical, const Change& change) const {
    std::vector<double> begins(operations_.size()), ends(operations_.size());
    double last = 0;
    for (const uint32_t node : order_) {
      const uint32_t i = node / 2;
      if (node % 2 == 0) {
        for (const uint32_t before : after_[i]) begins[i] = std::max(begins[i], ends[before]);
        continue;
      }
      double all_begun = begins[i];
      for (const uint32_t other : group_of(i)) all_begun = std::max(all_begun, begins[other]);
      const Operation& own = operations_[i];
      ends[i] = all_begun + (change(own) ? typical[static_cast<size_t>(own.kind)] : lengths_[i]);
      last = std::max(last, ends[i]);
    }
    return last;
  }

 private:
  using Key = std::tuple<uint32_t, OperationKind, int64_t>;
  static Key key_of(const Operation& o) { return {o.worker, o.kind, o.sequence}; }
  const std::vector<uint32_t>& group_of(uint32_t i) const {
    static const std::vector<uint32_t> kNone;
    return group_[i] == UINT32_MAX ? kNone : groups_[group_[i]];
  }
  std::optional<uint32_t> find(uint32_t worker, OperationKind kind, int64_t sequence) const {
    const auto at = index_.find({worker, kind, sequence});
    return at == index_.end() ? std::nullopt : std::optional(at->second);
  }

  // A send and its receive; a collective of the stage's data-parallel ranks.
  void find_groups() {
    std::map<std::tuple<OperationKind, uint32_t, uint32_t, int64_t>, std::vector<uint32_t>> found;
    for (uint32_t i = 0; i < operations_.size(); ++i) {
      const Operation& o = operations_[i];
      const PipelineWorker& worker = workers_[o.worker];
      switch (o.kind) {
        case OperationKind::forward_recv:
          found[{OperationKind::forward_send, worker.data_rank, worker.stage - 1, o.sequence}]
              .push_back(i);
          break;
        case OperationKind::backward_recv:
          found[{OperationKind::backward_send, worker.data_rank, worker.stage + 1, o.sequence}]
              .push_back(i);
          break;
        case OperationKind::forward_send:
        case OperationKind::backward_send:
          found[{o.kind, worker.data_rank, worker.stage, o.sequence}].push_back(i);
          break;
        case OperationKind::params_gather:
        case OperationKind::grads_reduce:
          found[{o.kind, 0, worker.stage, o.sequence}].push_back(i);
          break;
        default: break;
      }
    }
    group_.assign(operations_.size(), UINT32_MAX);
    for (auto& [key, members] : found) {
      for (const uint32_t i : members) group_[i] = static_cast<uint32_t>(groups_.size());
      groups_.push_back(std::move(members));
    }
  }

  // All computing is on one stream, each kind of communication on one of its own.
  void find_order_on_streams() {
    std::map<std::pair<uint32_t, OperationKind>, uint32_t> last;
    for (uint32_t i = 0; i < operations_.size(); ++i) {
      const Operation& o = operations_[i];
      const OperationKind stream = is_compute(o.kind) ? OperationKind::forward_compute : o.kind;
      const auto [at, fresh] = last.try_emplace({o.worker, stream}, i);
      if (!fresh) after_[i].push_back(std::exchange(at->second, i));
    }
  }

  void find_data_dependencies() {
    std::map<uint32_t, uint32_t> first, last;  // of a worker's computing
    for (uint32_t i = 0; i < operations_.size(); ++i) {
      const Operation& o = operations_[i];
      if (is_compute(o.kind)) {
        first.try_emplace(o.worker, i);
        last[o.worker] = i;
        const bool forward = o.kind == OperationKind::forward_compute;
        const auto from = forward ? OperationKind::forward_recv : OperationKind::backward_recv;
        if (const auto received = find(o.worker, from, o.sequence)) after_[i].push_back(*received);
      } else if (o.kind == OperationKind::forward_send || o.kind == OperationKind::backward_send) {
        const auto by = plus(o.kind, o.kind == OperationKind::forward_send ? -2 : -3);
        if (const auto made = find(o.worker, by, o.sequence)) after_[i].push_back(*made);
      }
    }
    for (uint32_t i = 0; i < operations_.size(); ++i) {
      const Operation& o = operations_[i];
      const auto begin = first.find(o.worker);
      if (!is_of_data_ranks(o.kind) || begin == first.end()) continue;
      if (o.kind == OperationKind::grads_reduce) {
        after_[i].push_back(last[o.worker]);
      } else if (o.begin < operations_[begin->second].begin) {
        after_[begin->second].push_back(i);
      } else if (const auto reduced = find(o.worker, OperationKind::grads_reduce, o.sequence)) {
        after_[i].push_back(*reduced);
      }
    }
  }

  // Nodes after those they depend on. What a circle holds (clocks that disagree) is left out.
  void find_order() {
    const auto nodes = 2 * static_cast<uint32_t>(operations_.size());
    std::vector<std::vector<uint32_t>> next(nodes);
    std::vector<uint32_t> missing(nodes, 0);
    const auto add = [&](uint32_t from, uint32_t to) {
      next[from].push_back(to);
      ++missing[to];
    };
    for (uint32_t i = 0; i < operations_.size(); ++i) {
      for (const uint32_t before : after_[i]) add(2 * before + 1, 2 * i);
      if (group_of(i).empty()) add(2 * i, 2 * i + 1);
      for (const uint32_t other : group_of(i)) add(2 * other, 2 * i + 1);
    }
    for (uint32_t node = 0; node < nodes; ++node) {
      if (missing[node] == 0) order_.push_back(node);
    }
    for (size_t at = 0; at < order_.size(); ++at) {
      for (const uint32_t to : next[order_[at]]) {
        if (--missing[to] == 0) order_.push_back(to);
      }
    }
  }

  // Without the wait for those that take part.
  void find_lengths() {
    for (uint32_t i = 0; i < operations_.size(); ++i) {
      int64_t begin = operations_[i].begin;
      for (const uint32_t other : group_of(i)) begin = std::max(begin, operations_[other].begin);
      lengths_.push_back(static_cast<double>(std::max<int64_t>(0, operations_[i].end - begin)));
    }
  }

  std::vector<Operation> operations_;
  const std::vector<PipelineWorker>& workers_;
  std::vector<std::vector<uint32_t>> after_, groups_;
  std::vector<uint32_t> group_, order_;
  std::vector<double> lengths_;
  std::map<Key, uint32_t> index_;
};

class WhatIf {
 public:
  explicit WhatIf(const PipelineJob& job) : job_(job) {
    for (const auto& step : job.steps) graphs_.emplace_back(step, job.workers);
    find_typical();
    as_it_was_ = mean_of([](const Operation&) { return false; });
    ideal_ = mean_of([](const Operation&) { return true; });
  }

  Pipeline run() {
    Pipeline out;
    out.steps = graphs_.size();
    out.data_ranks = job_.data_ranks;
    out.stages = job_.stages;
    out.workers = static_cast<uint32_t>(job_.workers.size());
    for (const StepGraph& graph : graphs_) out.recorded_us += graph.recorded() / 1000;
    out.recorded_us /= static_cast<double>(std::max<size_t>(1, graphs_.size()));
    out.simulated_us = as_it_was_ / 1000;
    out.ideal_us = ideal_ / 1000;
    if (ideal_ <= 0) return out;
    out.slowdown = as_it_was_ / ideal_;
    add_shares(out);
    add_slow_steps(out);
    return out;
  }

 private:
  // Computing: the mean, so that the whole of the work stays; communication: the median.
  void find_typical() {
    std::array<std::vector<double>, kOperationKinds> lengths;
    for (const StepGraph& graph : graphs_) {
      for (size_t i = 0; i < graph.operations().size(); ++i) {
        lengths[static_cast<size_t>(graph.operations()[i].kind)].push_back(graph.length(i));
      }
    }
    for (size_t kind = 0; kind < kOperationKinds; ++kind) {
      const std::vector<double>& all = lengths[kind];
      if (all.empty()) continue;
      typical_[kind] =
          is_compute(static_cast<OperationKind>(kind))
              ? std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size())
              : quantile(all, 0.5);
    }
  }

  double mean_of(const Change& change) const {
    double sum = 0;
    for (const StepGraph& graph : graphs_) sum += graph.simulate(typical_, change);
    return graphs_.empty() ? 0 : sum / static_cast<double>(graphs_.size());
  }

  double explains(const Change& change) const {
    const double lost = as_it_was_ - ideal_;
    return lost > 0 ? (as_it_was_ - mean_of(change)) / lost : 0;
  }

  double factor(const Change& those) const {
    std::array<std::pair<double, size_t>, kOperationKinds> own{}, others{};
    for (const StepGraph& graph : graphs_) {
      for (size_t i = 0; i < graph.operations().size(); ++i) {
        const Operation& o = graph.operations()[i];
        auto& [sum, count] = (those(o) ? own : others)[static_cast<size_t>(o.kind)];
        sum += graph.length(i);
        ++count;
      }
    }
    double took = 0, would_take = 0;
    for (size_t kind = 0; kind < kOperationKinds; ++kind) {
      if (!own[kind].second || !others[kind].second) continue;
      took += own[kind].first;
      would_take += others[kind].first / static_cast<double>(others[kind].second) *
                    static_cast<double>(own[kind].second);
    }
    return would_take > 0 ? took / would_take : 0;
  }

  PipelineShare share(std::string name, const Change& change) const {
    return {std::move(name), explains(change), factor(change)};
  }

  void add_shares(Pipeline& out) const {
    for (uint32_t stage = 0; stage < job_.stages; ++stage) {
      out.stage_shares.push_back(share(fmt::format("stage {}", stage), [&](const Operation& o) {
        return job_.workers[o.worker].stage == stage;
      }));
    }
    std::vector<double> of_rank;
    for (uint32_t rank = 0; rank < job_.data_ranks; ++rank) {
      of_rank.push_back(
          explains([&](const Operation& o) { return job_.workers[o.worker].data_rank == rank; }));
    }
    for (size_t i = 0; i < kOperationKinds; ++i) {
      const auto kind = static_cast<OperationKind>(i);
      const Change those = [kind](const Operation& o) { return o.kind == kind; };
      out.kind_shares.push_back({operation_name(kind), explains(those), 0});
    }
    if (job_.stages > 1) out.last_stage = out.stage_shares.back().explains;
    add_slow_workers(of_rank, out);
  }

  // A worker is as slow as its data-parallel rank and its stage both are.
  void add_slow_workers(const std::vector<double>& of_rank, Pipeline& out) const {
    std::vector<std::pair<double, uint32_t>> order;
    for (uint32_t i = 0; i < job_.workers.size(); ++i) {
      const PipelineWorker& worker = job_.workers[i];
      order.emplace_back(
          std::min(of_rank[worker.data_rank], out.stage_shares[worker.stage].explains), i);
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    const auto worst = static_cast<size_t>(
        std::max(1.0, std::round(kWorstPart * static_cast<double>(order.size()))));
    std::vector<bool> slow(job_.workers.size());
    for (size_t i = 0; i < std::min(worst, order.size()); ++i) {
      const uint32_t at = order[i].second;
      slow[at] = true;
      const PipelineWorker& worker = job_.workers[at];
      out.slow_workers.push_back(
          share(fmt::format("data-parallel rank {}, stage {}", worker.data_rank, worker.stage),
                [at](const Operation& o) { return o.worker == at; }));
    }
    out.worst_workers = explains([&](const Operation& o) { return slow[o.worker]; });
    const bool of_workers = out.worst_workers >= out.last_stage;
    find_worst_kind(
        [&, of_workers](const Operation& o) {
          return of_workers ? slow[o.worker] : job_.workers[o.worker].stage + 1 == job_.stages;
        },
        out);
  }

  // Of those operations, the kind that explains most.
  void find_worst_kind(const Change& those, Pipeline& out) const {
    for (size_t i = 0; i < kOperationKinds; ++i) {
      const auto kind = static_cast<OperationKind>(i);
      const Change both = [&](const Operation& o) { return o.kind == kind && those(o); };
      const double found = explains(both);
      if (out.worst_kind.name.empty() || found > out.worst_kind.explains) {
        // Against the same kind of all others.
        out.worst_kind = {operation_name(kind), found, factor(both)};
      }
    }
  }

  void add_slow_steps(Pipeline& out) const {
    for (size_t i = 0; i < graphs_.size(); ++i) {
      const double was = graphs_[i].simulate(typical_, [](const Operation&) { return false; });
      const double ideal = graphs_[i].simulate(typical_, [](const Operation&) { return true; });
      if (was < ideal * (1 + (out.slowdown - 1) / 2)) continue;
      if (out.slow_steps++ == 0) out.slow_since = job_.numbers[i];
    }
  }

  const PipelineJob& job_;
  std::vector<StepGraph> graphs_;
  Typical typical_{};
  double as_it_was_ = 0, ideal_ = 0;
};

}  // namespace

const char* operation_name(OperationKind kind) {
  static constexpr const char* kNames[kOperationKinds] = {
      "forward-compute", "backward-compute", "forward-send",      "forward-recv",
      "backward-send",   "backward-recv",    "params-all-gather", "grads-reduce-scatter"};
  return kNames[static_cast<size_t>(kind)];
}

Pipeline analyse(const PipelineJob& job) { return WhatIf(job).run(); }

}  // namespace gpuprof::analysis
