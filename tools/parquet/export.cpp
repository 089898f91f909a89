// SPDX-License-Identifier: Apache-2.0
#include "tools/parquet/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "formats/io/unfinished.h"
#include "tools/analysis/side_by_side.h"
#include "tools/console.h"
#include "tools/parquet/job_rows.h"
#include "tools/parquet/places.h"

namespace gpuprof::parquet_export {
namespace {

using namespace analysis;

constexpr size_t kGroupEvents = 1'000'000;    // of the processes that share files
constexpr size_t kFileRows = 4 * kBatchRows;  // at most, of events

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
void leave_out_known(std::vector<Exported>& sources, const std::map<int64_t, int64_t>& known,
                     Written& out) {
  std::erase_if(sources, [&](const Exported& source) {
    const auto at = known.find(source.id);
    if (at == known.end()) return false;
    ++out.there;
    if (at->second != static_cast<int64_t>(source.process->events.size())) ++out.changed;
    return true;
  });
}

std::map<std::string, std::vector<Exported>> by_partition(const std::vector<Exported>& all) {
  std::map<std::string, std::vector<Exported>> out;
  for (const Exported& source : all) out[partition_of(*source.process)].push_back(source);
  return out;
}

}  // namespace

Written write_tables(const Trace& trace, const Report& report, const ReportParts& parts,
                     const std::string& ranks, const std::string& folder) {
  Written out;
  WholeOutput whole;
  std::vector<PartitionLock> locks;  // until the files are in place
  const std::string of_report = partition_of(trace.processes.front());
  for (auto& [partition, sources] : by_partition(exported_of(trace, parts, ranks))) {
    locks.emplace_back(folder, partition);
    leave_out_known(sources, exported_processes(folder, partition), out);
    if (sources.empty()) continue;
    out.windows += sources.size();
    std::vector<int64_t> ids;
    for (const Exported& source : sources) ids.push_back(source.id);
    Part part(folder, fmt::format("{}/{}", partition, part_of(ids)), out);
    write_events(sources, part);
    part.write<Steps>("steps", [&](TableFile& file) { add_steps(sources, file); });
    if (partition == of_report) {
      part.write<Reports>("reports", [&](TableFile& file) { add_report(trace, report, file); });
      part.write<Verdicts>("verdicts", [&](TableFile& file) { add_verdicts(report, file); });
      part.write<Findings>("findings", [&](TableFile& file) { add_findings(report, file); });
    }
    part.write<Processes>("processes", [&](TableFile& file) { add_processes(sources, file); });
  }
  std::string error;
  if (!whole.keep(error)) throw Failure(error);
  return out;
}

}  // namespace gpuprof::parquet_export
