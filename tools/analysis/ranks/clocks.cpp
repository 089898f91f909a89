// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/ranks/clocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "formats/trace/listing.h"
#include "tools/analysis/ranks.h"
#include "tools/analysis/ranks/clock_fit.h"
#include "tools/analysis/ranks/move_times.h"
#include "tools/analysis/side_by_side.h"

namespace gpuprof::analysis {
namespace {

constexpr const char* kKey = "gpuprof_clocks";

std::vector<std::string> hosts_of(const Trace& trace) {
  std::vector<std::string> out;  // in order of rank
  for (const Process& process : trace.processes) {
    const std::string& host = process.header.host();
    if (process.is_data_worker() || host.empty()) continue;
    if (std::find(out.begin(), out.end(), host) == out.end()) out.push_back(host);
  }
  return out;
}

// The ends of each collective that several hosts are in: by host, the mean over its ranks.
std::vector<JointEnds> joint_ends(const Trace& trace, const std::vector<std::string>& hosts) {
  std::map<uint32_t, std::vector<Timeline>> windows;
  for (Timeline& timeline : make_timelines(trace)) {
    windows[timeline.process->header.window()].push_back(std::move(timeline));
  }
  std::vector<JointEnds> out;
  for (const auto& [number, timelines] : windows) {
    const RankComparison comparison = compare_ranks(timelines);
    for (const JointCollective& collective : comparison.collectives) {
      if (collective.by_copies) continue;
      std::map<uint32_t, std::pair<double, size_t>> sums;  // by host
      bool together = true;
      const Timeline& first = timelines[collective.parts[0].rank];
      const int64_t base = first.events().end_of(collective.parts[0].last);
      for (const CollectivePart& part : collective.parts) {
        const Timeline& timeline = timelines[part.rank];
        const Shape& shape = timeline.shape(part.event);
        together = together && ends_together(trace.text(shape.name));
        const auto host = std::find(hosts.begin(), hosts.end(), timeline.process->header.host());
        auto& [sum, count] = sums[static_cast<uint32_t>(host - hosts.begin())];
        sum += static_cast<double>(timeline.events().end_of(part.last) - base);
        ++count;
      }
      if (!together || sums.size() < 2) continue;
      JointEnds ends{base, {}};
      for (const auto& [host, sum] : sums) {
        ends.ends.push_back({host, sum.first / static_cast<double>(sum.second)});
      }
      out.push_back(std::move(ends));
    }
  }
  return out;
}

nlohmann::json to_json(const std::vector<HostClock>& clocks) {
  nlohmann::json out = nlohmann::json::array();
  for (const HostClock& clock : clocks) {
    nlohmann::json row = {{"host", clock.host}, {"collectives", clock.collectives}};
    row["aligned"] = clock.first || clock.collectives > 0;
    if (clock.collectives) {
      row["offset_us"] = clock.offset_us;
      row["drift_ppm"] = clock.drift_ppm;
      row["error_us"] = clock.error_us;
    }
    out.push_back(std::move(row));
  }
  return out;
}

// Without braces, as Process::metadata is.
void note_in(Trace& trace, const std::vector<HostClock>& clocks) {
  const std::string text =
      fmt::format("\"{}\":{}", kKey,
                  to_json(clocks).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  for (Process& process : trace.processes) {
    process.metadata += (process.metadata.empty() ? "" : ",") + text;
  }
}

}  // namespace

bool ends_together(std::string_view kernel) {
  for (const std::string_view other :
       {"Broadcast", "SendRecv", "Send", "Recv", "Gather_", "Scatter_"}) {
    const bool all = other == "Gather_" || other == "Scatter_";
    const size_t at = kernel.find(other);
    if (at == std::string_view::npos) continue;
    const std::string_view before = kernel.substr(0, at);
    if (!all || !(before.ends_with("All") || before.ends_with("Reduce"))) return false;
  }
  return kernel.find("_Reduce_") == std::string_view::npos;
}

std::vector<HostClock> align_clocks(Trace& trace) {
  const std::vector<std::string> hosts = hosts_of(trace);
  if (hosts.size() < 2 || !clocks_of(trace).empty()) return {};
  const bool aligned_elsewhere =
      std::any_of(trace.processes.begin(), trace.processes.end(),
                  [](const Process& process) { return process.source != Source::dump; });
  if (aligned_elsewhere) return {};
  std::vector<HostTime> times(hosts.size());
  for (const Process& process : trace.processes) {
    const auto host = std::find(hosts.begin(), hosts.end(), process.header.host());
    if (host == hosts.end() || process.is_data_worker()) continue;
    HostTime& time = times[static_cast<size_t>(host - hosts.begin())];
    time.begin = std::min(time.begin, process.window_begin);
    time.end = std::max(time.end, process.window_end);
  }
  const std::vector<ClockFit> fits = fit_clocks(joint_ends(trace, hosts), times);
  std::vector<HostClock> out;
  std::map<std::string, ClockLine> lines;
  for (size_t i = 0; i < hosts.size(); ++i) {
    const ClockFit& fit = fits[i];
    const int64_t middle = times[i].begin + (times[i].end - times[i].begin) / 2;
    out.push_back({hosts[i], fit.line.at(middle) / 1000, fit.line.drift * 1e6, fit.error_ns / 1000,
                   fit.collectives, i == 0});
    if (i > 0 && fit.collectives > 0) lines[hosts[i]] = fit.line;
  }
  std::vector<std::function<void()>> tasks;
  for (Process& process : trace.processes) {
    const auto line = lines.find(process.header.host());
    if (line == lines.end()) continue;
    tasks.push_back([&process, &trace, &clock = line->second] {
      move_times(process, clock, trace.shapes.size());
    });
  }
  if (!tasks.empty()) side_by_side(std::move(tasks));
  note_in(trace, out);
  return out;
}

std::vector<HostClock> clocks_of(const Trace& trace) {
  std::vector<HostClock> out;
  for (const Process& process : trace.processes) {
    if (process.metadata.find(kKey) == std::string::npos) continue;
    const auto all = nlohmann::json::parse("{" + process.metadata + "}", nullptr, false);
    if (!all.is_object() || !all.contains(kKey) || !all[kKey].is_array()) return out;
    for (const auto& row : all[kKey]) {
      if (!row.is_object()) continue;
      HostClock clock;
      clock.host = row.value("host", "");
      clock.collectives = row.value("collectives", size_t{0});
      clock.offset_us = row.value("offset_us", 0.0);
      clock.drift_ppm = row.value("drift_ppm", 0.0);
      clock.error_us = row.value("error_us", 0.0);
      clock.first = out.empty();
      out.push_back(std::move(clock));
    }
    return out;
  }
  return out;
}

nlohmann::json clocks_json(const Trace& trace) { return to_json(clocks_of(trace)); }

namespace {

// With its sign, and never -0.
std::string correction_text(double us) {
  const double tenths = std::round(us * 10) / 10;
  if (std::abs(tenths) < 1000) return fmt::format("{:+.1f} us", tenths == 0 ? 0 : tenths);
  return fmt::format("{:+.3f} ms", us / 1000);
}

}  // namespace

std::string describe_clocks(const std::vector<HostClock>& clocks) {
  size_t aligned = 0, least = SIZE_MAX;
  double error = 0;
  const HostClock* most = nullptr;
  constexpr size_t kNamed = 8;
  std::vector<std::string_view> apart;
  for (const HostClock& clock : clocks) {
    if (clock.first) continue;
    if (!clock.collectives) {
      apart.push_back(clock.host);
      continue;
    }
    ++aligned;
    least = std::min(least, clock.collectives);
    error = std::max(error, clock.error_us);
    if (!most || std::abs(clock.offset_us) > std::abs(most->offset_us)) most = &clock;
  }
  std::string out;
  if (aligned) {
    out = fmt::format(
        "the clocks of {} hosts are aligned by the ends of {} collectives: times of ranks are "
        "comparable to {:.1f} us (largest correction: {}, {})",
        aligned + 1, least, std::max(0.1, error), most->host, correction_text(most->offset_us));
  }
  if (!apart.empty()) {
    out += fmt::format(
        "{} no collective in common with the others: wall clocks stand, by how much they are off "
        "is not known ({})",
        out.empty() ? "hosts have" : "; some hosts have", names_of_some(apart, kNamed));
  }
  return out;
}

}  // namespace gpuprof::analysis
