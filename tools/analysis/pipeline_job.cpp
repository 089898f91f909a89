// SPDX-License-Identifier: Apache-2.0
// Operations of a pipeline from a trace that names them.
#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>

#include "tools/analysis/pipeline.h"

namespace gpuprof::analysis {
namespace {

struct Row {
  uint32_t stage, tensor_rank;
  std::string_view use;  // "compute", "pp-comm"...
};

// "PP rank P, TP rank T, compute"
std::optional<Row> row_of(std::string_view name) {
  Row out{};
  const auto take = [&name](std::string_view words, uint32_t& number) {
    if (!name.starts_with(words)) return false;
    name.remove_prefix(words.size());
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    name.remove_prefix(static_cast<size_t>(end - name.data()));
    return error == std::errc();
  };
  if (!take("PP rank ", out.stage) || !take(", TP rank ", out.tensor_rank)) return {};
  if (!name.starts_with(", ")) return {};
  out.use = name.substr(2);
  return out;
}

std::optional<OperationKind> kind_of(std::string_view name) {
  for (size_t i = 0; i < kOperationKinds; ++i) {
    const auto kind = static_cast<OperationKind>(i);
    if (name == operation_name(kind)) return kind;
  }
  return {};
}

// Of arguments as JSON text: the whole number that belongs to `key`.
std::optional<int64_t> number_in(std::string_view arguments, std::string_view key) {
  const size_t at = arguments.find(key);
  if (at == std::string_view::npos) return {};
  const size_t begin = arguments.find_first_not_of(" :", at + key.size());
  if (begin == std::string_view::npos) return {};
  int64_t number = 0;
  const auto [end, error] =
      std::from_chars(arguments.data() + begin, arguments.data() + arguments.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

// The rows of a trace by worker.
class Rows {
 public:
  explicit Rows(const Trace& trace) {
    std::map<std::tuple<uint32_t, uint32_t, std::string_view>, uint32_t> counts;
    for (const Process& process : trace.processes) {
      for (const Lane& lane : process.lanes) {  // in order of their numbers
        const std::optional<Row> row = row_of(lane.thread_name);
        if (!row) continue;
        // Data-parallel ranks of the same stage; tensor-parallel ones stand beside them.
        const uint32_t number = counts[{row->stage, row->tensor_rank, row->use}]++;
        workers_.emplace(&lane, Id{number, row->tensor_rank, row->stage});
      }
    }
    std::set<std::pair<uint32_t, uint32_t>> ranks;
    for (const auto& [lane, id] : workers_) ranks.insert({id.number, id.tensor_rank});
    for (const auto& rank : ranks) {
      const auto next = static_cast<uint32_t>(data_ranks_.size());
      data_ranks_.emplace(rank, next);
    }
  }

  std::optional<PipelineWorker> worker_of(const Lane& lane) const {
    const auto at = workers_.find(&lane);
    if (at == workers_.end()) return {};
    const Id& id = at->second;
    return PipelineWorker{data_ranks_.at({id.number, id.tensor_rank}), id.stage};
  }

 private:
  struct Id {
    uint32_t number, tensor_rank, stage;
  };
  std::map<const Lane*, Id> workers_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> data_ranks_;
};

struct Found {
  uint64_t step;
  PipelineWorker worker;
  Operation operation;
};

void add_operations(const Trace& trace, const Process& process, const Lane& lane,
                    const PipelineWorker& worker, std::vector<Found>& out) {
  const EventTable& events = process.events;
  for (uint32_t i = lane.first_event; i < lane.first_event + lane.event_count; ++i) {
    const Shape& shape = trace.shapes[events.shape_of(i)];
    const std::optional<OperationKind> kind = kind_of(trace.text(shape.label));
    if (!kind) continue;
    const EventExtra& extra = process.extras[events.extra_of(i)];
    const std::string_view arguments = trace.text(extra.args);
    const auto step = number_in(arguments, "\"step\"");
    const auto sequence = number_in(arguments, "\"seq_id\"");
    if (!step || *step < 0 || !sequence) continue;
    out.push_back({static_cast<uint64_t>(*step),
                   worker,
                   {events.begin_of(i), events.end_of(i), *sequence, 0, *kind}});
  }
}

}  // namespace

std::optional<PipelineJob> pipeline_job(const Trace& trace) {
  const Rows rows(trace);
  std::vector<Found> found;
  for (const Process& process : trace.processes) {
    for (const Lane& lane : process.lanes) {
      if (const auto worker = rows.worker_of(lane)) {
        add_operations(trace, process, lane, *worker, found);
      }
    }
  }
  if (found.empty()) return {};
  PipelineJob out;
  std::map<PipelineWorker, uint32_t> workers;
  std::map<uint64_t, std::vector<Operation>> steps;
  for (const Found& each : found) workers.emplace(each.worker, 0);
  for (auto& [worker, index] : workers) {
    index = static_cast<uint32_t>(out.workers.size());
    out.workers.push_back(worker);
    out.data_ranks = std::max(out.data_ranks, worker.data_rank + 1);
    out.stages = std::max(out.stages, worker.stage + 1);
  }
  for (Found& each : found) {
    each.operation.worker = workers[each.worker];
    steps[each.step].push_back(each.operation);
  }
  for (auto& [number, operations] : steps) {
    out.numbers.push_back(number);
    out.steps.push_back(std::move(operations));
  }
  return out;
}

}  // namespace gpuprof::analysis
