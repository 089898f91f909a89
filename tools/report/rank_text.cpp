// SPDX-License-Identifier: Apache-2.0
#include "tools/report/rank_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "formats/trace/listing.h"
#include "formats/trace/names.h"
#include "tools/report/text_table.h"

namespace gpuprof {

using namespace analysis;

namespace {

// Which ranks the groups are of that the program names alike.
void add_groups(TextLines& out, const Report& report) {
  constexpr size_t kShownGroups = 4;
  std::map<std::string, std::vector<std::string>> ranks;
  for (const GroupRow& row : report.tables.process_groups) {
    if (row.ranks.empty()) continue;
    ranks[std::string(group_label(row.name, row.description))].push_back(row.ranks);
  }
  for (auto& [label, lists] : ranks) {
    out.line("  {}: ranks {}", label, names_of_some(lists, kShownGroups));
  }
}

void add_links(TextLines& out, std::string_view what, const std::vector<LinkRow>& rows) {
  if (rows.empty()) return;
  const auto link = [&](const LinkRow& row) {
    return fmt::format("{} {} to {}: {:.1f} GB/s", what, row.from, row.to, row.gbs());
  };
  if (rows.size() == 1) return out.line("  messages, {}", link(rows[0]));
  out.line("  fastest messages, {}; slowest, {}", link(rows.front()), link(rows.back()));
}

void add_most_waiting(TextLines& out, const RankMatrix& matrix) {
  double most = 0;
  size_t who = 0, whom = 0;
  for (size_t i = 0; i < matrix.names.size(); ++i) {
    for (size_t j = 0; j < matrix.names.size(); ++j) {
      if (matrix.waits_us[i][j] <= most) continue;
      most = matrix.waits_us[i][j], who = i, whom = j;
    }
  }
  if (most <= 0) return;
  out.line("  most waiting: {} for {}, {} in the whole window", matrix.names[who],
           matrix.names[whom], format_us(most));
}

}  // namespace

void add_collectives(TextLines& out, const Report& report, const TextOptions& options) {
  if (report.tables.collectives.empty()) return;
  out.title("Collectives");
  TextTable rows({a_unit(report), "each", "bytes", "collective"}, options.width);
  for (const CollectiveRow& row : report.tables.collectives) {
    rows.row({count_per_unit(report, row.count), time_each(row.total_us, row.count),
              row.unsized ? "unknown" : format_bytes(row.bytes / std::max<uint64_t>(1, row.count)),
              row.group.empty() ? row.name : fmt::format("{} in {}", row.name, row.group)});
  }
  out.add(rows.text());
  add_groups(out, report);
}

void add_collective_times(TextLines& out, const Report& report, const TextOptions& options) {
  const CollectiveTimes& times = report.collective_times;
  if (times.matched == 0 && times.different == 0) return;
  out.title("Collectives across their ranks");
  const bool wide = options.width >= kWide;
  const bool linked = std::any_of(times.rows.begin(), times.rows.end(), [](const auto& row) {
    return row.matched > 0 && row.peak.gbs > 0;
  });
  TextTable rows({"calls", "bytes", "transfer", "waits", wide ? "exposed" : "", wide ? "GB/s" : "",
                  "bus GB/s", linked ? "of link" : "", "collective"},
                 options.width);
  std::set<std::string> links_known;
  size_t shown = 0;
  uint64_t by_copies = 0;
  double between_us = 0;
  for (const CollectiveTimesRow& row : times.rows) {
    by_copies += row.by_copies, between_us += row.between_us;
    if (row.matched == 0 || ++shown > 8) continue;
    rows.row({fmt::format("{}", row.calls), format_bytes(row.bytes / row.matched),
              time_each(row.transfer_us, row.matched),
              row.by_copies < row.matched ? time_each(row.waiting_us, row.matched - row.by_copies)
                                          : "unknown",
              wide ? time_each(row.exposed_us, row.matched) : "",
              wide ? fmt::format("{:.1f}", row.algorithm_gbs) : "",
              fmt::format("{:.1f}", row.bus_gbs),
              row.peak.gbs > 0 ? fmt::format("{:.0f} %", 100 * row.bus_gbs / row.peak.gbs) : "",
              row.function + ", " + members_text(row)});
    if (row.peak.gbs > 0) links_known.insert(row.peak.link);
  }
  if (shown > 0) out.add(rows.text());
  if (by_copies > 0) {
    out.line(
        "  {} calls are done by copy engines: {} each is between their copies, and may be waiting",
        by_copies, time_each(between_us, by_copies));
  }
  for (const std::string& link : links_known) {
    out.line("  of link: NCCL is assumed to use {}, one way", link);
  }
  if (shown > 8) out.line("  and {} more in --format json", shown - 8);
  if (times.matched < times.calls) {
    out.line("  {} of {} calls were recorded on all their ranks; times are of these", times.matched,
             times.calls);
  }
  if (times.different > 0) {
    out.line(
        "  {} calls name another function or size on some rank: NCCL lets these hang, or gives "
        "wrong data",
        times.different);
  }
  add_links(out, "rank", times.links);
  add_links(out, "host", times.host_links);
  add_most_waiting(out, times.waits);
}

void add_rank_speeds(TextLines& out, const Report& report) {
  if (report.speeds.empty()) return;
  out.title("Ranks against the median one");
  out.line("  {:>4} {:>9} {:>9} {:>9} {:>16}", "rank", "kernels", "data", "host",
           "waits " + a_unit(report));
  for (const RankSpeed& speed : report.speeds) {
    out.line("  {:>4} {:>8.2f}x {:>8.2f}x {:>8.2f}x {:>16}", speed.rank, speed.compute,
             speed.data_loading, speed.host, format_us(speed.waited_us));
  }
}

void add_pipeline(TextLines& out, const Report& report) {
  if (!report.pipeline) return;
  out.title("What explains the pipeline's slowdown");
  const Pipeline& in = *report.pipeline;
  out.line("  slowest workers {:>6.1f} %   last stage {:>6.1f} %", 100 * in.worst_workers,
           100 * in.last_stage);
  for (const PipelineShare& row : in.stage_shares) {
    out.line("  {:<22}{:>6.1f} %  {:>6.2f}x", row.name, 100 * row.explains, row.factor);
  }
  for (const PipelineShare& row : in.kind_shares) {
    out.line("  {:<22}{:>6.1f} %", row.name, 100 * row.explains);
  }
}

}  // namespace gpuprof
