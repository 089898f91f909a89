// SPDX-License-Identifier: Apache-2.0
#include "tools/parquet/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>

#include "formats/io/unfinished.h"
#include "tools/analysis/side_by_side.h"
#include "tools/console.h"
#include "tools/inputs.h"
#include "tools/parquet/job_rows.h"
#include "tools/parquet/places.h"

namespace gpuprof::parquet_export {
namespace {

using namespace analysis;

constexpr size_t kGroupEvents = 1'000'000;    // of the processes that share files
constexpr size_t kFileRows = 4 * kBatchRows;  // at most, of events

using Anatomies = std::vector<StepAnatomy>;

// What is exported, with what the report knows of it; by the same index.
struct Chosen {
  std::vector<Exported> sources;
  std::vector<const Anatomies*> steps;  // null: no timeline
};

std::span<const CollectiveCall> calls_of(const ReportParts& parts, uint32_t timeline) {
  const auto of = [](const CollectiveCall& call) { return call.timeline; };
  const auto found = std::ranges::equal_range(parts.collectives, timeline, {}, of);
  return {found.begin(), found.end()};
}

Chosen choose(const Trace& trace, const ReportParts& parts, const std::string& ranks) {
  std::unordered_map<const Process*, uint32_t> timelines;
  for (uint32_t i = 0; i < parts.timelines.size(); ++i) timelines[parts.timelines[i].process] = i;
  Chosen out;
  for (const Process& process : trace.processes) {
    if (!ranks.empty() && !is_of_ranks(ranks, process)) continue;
    const auto at = timelines.find(&process);
    const bool timed = at != timelines.end();
    out.sources.push_back({&trace, &process, timed ? &parts.timelines[at->second] : nullptr,
                           timed ? calls_of(parts, at->second) : std::span<const CollectiveCall>(),
                           process_id(process)});
    out.steps.push_back(timed ? &parts.steps[at->second] : nullptr);
  }
  if (out.sources.empty()) {
    throw Failure(fmt::format("--ranks {}: none of these ranks is in the input", ranks));
  }
  return out;
}

// Writes files into one directory for each table. Its tasks run side by side.
class Part {
 public:
  Part(const std::string& folder, const std::string& path, Written& out)
      : folder_(folder), path_(path), out_(out) {}

  // A file of the table that `Enum` names.
  template <typename Enum, typename Fill>
  void write(const std::string& name, const Fill& fill) {
    const TableRow& table = table_of<Enum>();
    const std::string below = fmt::format("{}/{}", table.name, path_);
    make_folders(folder_, below);
    TableFile file(table, fmt::format("{}/{}/{}.parquet", folder_, below, name));
    fill(file);
    file.close();
    const std::lock_guard lock(lock_);
    out_.rows += file.rows(), out_.bytes += file.bytes(), ++out_.files;
  }

  // The rows of events of processes that share files.
  template <typename Enum>
  void write_events(std::span<const Exported> sources, size_t group) {
    const std::vector<RowKey> keys = sorted_keys<Enum>(sources);
    const size_t pieces = (keys.size() + kFileRows - 1) / kFileRows;
    for (size_t i = 0; i < pieces; ++i) {
      const size_t first = keys.size() * i / pieces, end = keys.size() * (i + 1) / pieces;
      const auto piece = std::span(keys).subspan(first, end - first);
      write<Enum>(fmt::format("{:05}-{:03}", group, i),
                  [&](TableFile& file) { add_rows<Enum>(sources, piece, file); });
    }
  }

 private:
  const std::string folder_, path_;
  std::mutex lock_;
  Written& out_;
};

// Consecutive processes with some hundred thousand rows of each table.
std::vector<std::span<const Exported>> groups_of(std::span<const Exported> sources) {
  std::vector<std::span<const Exported>> out;
  for (size_t begin = 0, end = 0; begin < sources.size(); begin = end) {
    size_t events = 0;
    while (end < sources.size() && (end == begin || events < kGroupEvents)) {
      events += sources[end++].process->events.size();
    }
    out.push_back(sources.subspan(begin, end - begin));
  }
  return out;
}

void write_events(std::span<const Exported> sources, Part& part) {
  const auto groups = groups_of(sources);
  std::vector<std::function<void()>> tasks;
  for (size_t i = 0; i < groups.size(); ++i) {
    const auto group = groups[i];
    tasks.push_back([&part, group, i] { part.write_events<GpuWork>(group, i); });
    tasks.push_back([&part, group, i] { part.write_events<Calls>(group, i); });
    tasks.push_back([&part, group, i] { part.write_events<Operators>(group, i); });
    tasks.push_back([&part, group, i] {
      part.write_events<Collectives>(group, i);
      part.write_events<Samples>(group, i);
    });
  }
  side_by_side(std::move(tasks));
}

// Takes out what the directory has.
void leave_out_known(Chosen& chosen, const std::map<int64_t, int64_t>& known, Written& out) {
  Chosen fresh;
  for (size_t i = 0; i < chosen.sources.size(); ++i) {
    const auto at = known.find(chosen.sources[i].id);
    if (at == known.end()) {
      fresh.sources.push_back(chosen.sources[i]);
      fresh.steps.push_back(chosen.steps[i]);
      continue;
    }
    ++out.there;
    const size_t events = chosen.sources[i].process->events.size();
    if (at->second != static_cast<int64_t>(events)) ++out.changed;
  }
  chosen = std::move(fresh);
}

std::map<std::string, Chosen> by_partition(const Chosen& all) {
  std::map<std::string, Chosen> out;
  for (size_t i = 0; i < all.sources.size(); ++i) {
    Chosen& chosen = out[partition_of(*all.sources[i].process)];
    chosen.sources.push_back(all.sources[i]);
    chosen.steps.push_back(all.steps[i]);
  }
  return out;
}

}  // namespace

Written write_tables(const Trace& trace, const Report& report, const ReportParts& parts,
                     const std::string& ranks, const std::string& folder) {
  Written out;
  WholeOutput whole;
  std::vector<PartitionLock> locks;  // until the files are in place
  const std::string of_report = partition_of(trace.processes.front());
  for (auto& [partition, chosen] : by_partition(choose(trace, parts, ranks))) {
    locks.emplace_back(folder, partition);
    leave_out_known(chosen, exported_processes(folder, partition), out);
    if (chosen.sources.empty()) continue;
    out.processes += chosen.sources.size();
    std::vector<int64_t> ids;
    for (const Exported& source : chosen.sources) ids.push_back(source.id);
    Part part(folder, fmt::format("{}/{}", partition, part_of(ids)), out);
    write_events(chosen.sources, part);
    part.write<Steps>("steps",
                      [&](TableFile& file) { add_steps(chosen.sources, chosen.steps, file); });
    if (partition == of_report) {
      part.write<Reports>("reports", [&](TableFile& file) { add_report(trace, report, file); });
      part.write<Verdicts>("verdicts", [&](TableFile& file) { add_verdicts(report, file); });
      part.write<Findings>("findings", [&](TableFile& file) { add_findings(report, file); });
    }
    part.write<Processes>("processes",
                          [&](TableFile& file) { add_processes(chosen.sources, file); });
  }
  std::string error;
  if (!whole.keep(error)) throw Failure(error);
  return out;
}

}  // namespace gpuprof::parquet_export
