// SPDX-License-Identifier: Apache-2.0
#include "tools/otlp/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "formats/core/names.h"
#include "formats/trace/process_key.h"
#include "formats/views/left_out_text.h"
#include "tools/analysis/statistics.h"
#include "tools/otlp/identity.h"
#include "tools/otlp/known_parts.h"

namespace gpuprof::otlp {
namespace {

using namespace analysis;

constexpr int kCumulative = 2;                // AGGREGATION_TEMPORALITY_CUMULATIVE
constexpr size_t kWindowsOfLine = 64;         // at most, so that no line is too long
constexpr double kQuantiles[] = {0.5, 0.95};  // those of the report

struct MetricRow {
  const char *name, *unit, *description;
};
constexpr MetricRow kWindowDuration = {"window.duration", "s", "Length of the window."};
constexpr MetricRow kStepDuration = {"step.duration", "s", "Time of steps that were recorded."};
constexpr MetricRow kGpuIdle = {"gpu.idle", "1",
                                "Share of the steps in which the GPU had no work of the process."};
constexpr MetricRow kExposed = {
    "communication.exposed", "1",
    "Share of the steps in which the GPU had kernels of communication and no computing ones."};
constexpr MetricRow kDataWait = {
    "data.wait", "1", "Share of the steps in which the GPU was idle for want of loaded data."};
constexpr MetricRow kOwnCost = {"own_cost", "1",
                                "Share of the window that gpuprof and CUPTI count as their own."};
constexpr MetricRow kLeftOut = {
    "left_out", "1", "Share of the window in which GPUPROF_BUDGET left out a kind of records."};
constexpr MetricRow kLosses = {"losses", "{loss}", "What is missing or wrong in the dumps."};
constexpr MetricRow kLossesByCause = {"losses.by_cause", "{loss}",
                                      "The same by cause; causes without any are not listed."};

// What a point is of.
struct Place {
  int64_t begin, end;  // ns since 1970
  Json attributes;
};

// Metrics of one resource. Points of one metric lie together.
class Metrics {
 public:
  explicit Metrics(const char* prefix) : prefix_(prefix) {}

  void gauge(const MetricRow& row, const Place& place, double value) {
    Json point = point_at(place);
    point["asDouble"] = value;
    add(row, "gauge", std::move(point));
  }
  void sum(const MetricRow& row, const Place& place, uint64_t value) {
    Json point = point_at(place);
    point["asInt"] = std::to_string(value);
    Json& data = add(row, "sum", std::move(point));
    data["aggregationTemporality"] = kCumulative;
    data["isMonotonic"] = true;
  }
  void summary(const MetricRow& row, const Place& place, const std::vector<double>& values) {
    Json point = point_at(place), quantiles = Json::array();
    double sum = 0;
    for (const double value : values) sum += value;
    for (const double each : kQuantiles) {
      quantiles.push_back(
          {{"quantile", each},
           {"value", each == 0.5 ? quantile(values, each) : nearest_rank(values, each)}});
    }
    point["count"] = std::to_string(values.size());
    point["sum"] = sum;
    point["quantileValues"] = std::move(quantiles);
    add(row, "summary", std::move(point));
  }
  // Returns the number of points.
  size_t write(const Json& resource, const Json& scope, LineWriter& out) const {
    out.begin(resource, scope);
    for (const Json& metric : list_) out.add(metric);
    return points_;
  }

 private:
  static Json point_at(const Place& place) {
    Json out = Json::object();
    if (!place.attributes.empty()) out["attributes"] = place.attributes;
    out["startTimeUnixNano"] = unix_nano(place.begin);
    out["timeUnixNano"] = unix_nano(place.end);
    return out;
  }
  Json& add(const MetricRow& row, const char* type, Json point) {
    ++points_;
    const std::string name = std::string(prefix_) + row.name;
    auto at = std::find_if(list_.begin(), list_.end(),
                           [&](const Json& metric) { return metric["name"] == name; });
    if (at == list_.end()) {
      list_.push_back({{"name", name},
                       {"unit", row.unit},
                       {"description", row.description},
                       {type, {{"dataPoints", Json::array()}}}});
      at = list_.end() - 1;
    }
    Json& data = (*at)[type];
    data["dataPoints"].push_back(std::move(point));
    return data;
  }

  const char* const prefix_;
  std::vector<Json> list_;
  size_t points_ = 0;
};

// Each figure that is known.
void add_steps(const StepSums& steps, const Place& place, Metrics& out) {
  if (!steps.seconds.empty()) out.summary(kStepDuration, place, steps.seconds);
  if (!steps.known.any) return;
  out.gauge(kGpuIdle, place, steps.idle_share());
  if (steps.known.apart) out.gauge(kExposed, place, steps.share(Part::communication));
  if (steps.known.has(Part::data_loading)) {
    out.gauge(kDataWait, place, steps.share(Part::data_loading));
  }
}

// The same with an attribute more.
Place with(Place place, std::string_view key, std::string_view value) {
  Attributes more;
  more.text(key, value);
  for (Json& each : more.take()) place.attributes.push_back(std::move(each));
  return place;
}

void add_losses(const std::array<uint64_t, kLossKinds>& losses, const Place& place, Metrics& out) {
  uint64_t all = 0;
  for (const uint64_t count : losses) all += count;
  out.sum(kLosses, place, all);
  for (size_t i = 0; i < losses.size(); ++i) {
    if (losses[i] == 0) continue;
    out.sum(kLossesByCause, with(place, "gpuprof.loss.cause", loss_name(static_cast<Loss>(i))),
            losses[i]);
  }
}

// By kind; kinds that are there have no point.
void add_left_out(std::span<const Exported> sources, const Place& place, Metrics& out) {
  std::array<double, kShedKinds> without_ns{};
  double all_ns = 0;
  for (const Exported& source : sources) {
    if (!source.timeline) continue;
    const Process& process = *source.process;
    all_ns += static_cast<double>(process.window_end - process.window_begin);
    for (const RecordingBudget::LeftOut& each : process.budget.left_out) {
      without_ns[static_cast<size_t>(each.kind)] +=
          static_cast<double>(std::max(int64_t{0}, process.window_end - each.since));
    }
  }
  for (size_t kind = 0; kind < kShedKinds; ++kind) {
    if (without_ns[kind] <= 0) continue;
    out.gauge(kLeftOut,
              with(place, "gpuprof.left_out.kind", left_out_name(static_cast<ShedKind>(kind))),
              without_ns[kind] / all_ns);
  }
}

// OTLP has no time before 1970.
bool is_possible(int64_t begin, int64_t end) { return begin >= 0 && end >= begin; }

void add_window(const Exported& source, Metrics& out) {
  const Process& process = *source.process;
  if (!is_possible(process.window_begin, process.window_end)) return;
  Attributes window;
  window.whole("gpuprof.window", process.header.window());
  const Place place = {process.window_begin, process.window_end, window.take()};
  out.gauge(kWindowDuration, place, static_cast<double>(place.end - place.begin) / 1e9);
  add_steps(sum_up({&source, 1}), place, out);
  add_left_out({&source, 1}, place, out);
  if (own_cost_known(process)) out.gauge(kOwnCost, place, own_cost(process).percent / 100);
  if (losses_known(*source.trace, process)) add_losses(process.losses, place, out);
}

// What the report says of all of them.
void add_run(std::span<const Exported> all, const Report& report, Metrics& out) {
  Place place = {INT64_MAX, INT64_MIN, Json::array()};
  for (const Exported& source : all) {
    if (!source.timeline) continue;
    place.begin = std::min(place.begin, source.process->window_begin);
    place.end = std::max(place.end, source.process->window_end);
  }
  if (!is_possible(place.begin, place.end)) return;
  add_steps(sum_up(all), place, out);
  add_left_out(all, place, out);
  if (report.own_cost_pct) out.gauge(kOwnCost, place, *report.own_cost_pct / 100);
  if (report.losses_known) add_losses(report.losses, place, out);
}

}  // namespace

size_t write_metrics(std::span<const Exported> sources, std::span<const Exported> all,
                     const Report& report, LineWriter& out) {
  size_t points = 0;
  for (auto at = sources.begin(); at != sources.end();) {
    const Process& first = *at->process;
    Metrics metrics("gpuprof.");
    for (size_t i = 0; i < kWindowsOfLine && at != sources.end(); ++i, ++at) {
      if (key_of(*at->process) != key_of(first)) break;
      if (at->timeline) add_window(*at, metrics);
    }
    points += metrics.write(process_resource(first), scope_of(first), out);
  }
  Metrics run("gpuprof.run.");
  add_run(all, report, run);
  const Process& first = *all.front().process;
  points += run.write(run_resource(first), scope_of(first), out);
  out.end();
  return points;
}

}  // namespace gpuprof::otlp
