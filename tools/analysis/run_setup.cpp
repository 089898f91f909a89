// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/run_setup.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>

#include "formats/core/settings.h"
#include "formats/trace/activities.h"
#include "formats/trace/process_key.h"
#include "tools/console.h"
#include "tools/versions.h"

namespace gpuprof::analysis {
namespace {

struct Row {
  SetupPart part;
  const char* name;   // in JSON
  const char* label;  // for people
};
constexpr Row kRows[] = {
    {SetupPart::ranks, "ranks", "ranks"},
    {SetupPart::gpu, "gpu", "GPU"},
    {SetupPart::driver, "driver", "driver"},
    {SetupPart::cuda, "cuda", "CUDA"},
    {SetupPart::nccl, "nccl", "NCCL"},
    {SetupPart::steps, "steps", "steps by"},
    {SetupPart::recorded, "recorded", "recorded"},
};
static_assert(std::size(kRows) == kSetupParts, "a row for each SetupPart");

const Row& row_of(SetupPart part) { return kRows[static_cast<size_t>(part)]; }

// Settings beside the activities that change what is recorded, or how.
constexpr std::string_view kRecordingSettings[] = {
    "GPUPROF_STACKS", "GPUPROF_MEMORY", "GPUPROF_CUPTI", "GPUPROF_GPU_TIMES", "GPUPROF_METRICS"};

std::vector<std::string> only_in(const std::set<std::string>& own,
                                 const std::set<std::string>& others) {
  std::vector<std::string> out;
  std::set_difference(own.begin(), own.end(), others.begin(), others.end(),
                      std::back_inserter(out));
  return out;
}

std::vector<std::string> listed(const std::set<std::string>& values) {
  return {values.begin(), values.end()};
}

// For a line: no value ends it.
std::string joined(const std::vector<std::string>& values) {
  std::vector<std::string> out;
  for (const std::string& value : values) out.push_back(escaped(value));
  return fmt::format("{}", fmt::join(out, ", "));
}

}  // namespace

const char* setup_name(SetupPart part) { return row_of(part).name; }

void RunSetup::add_run(const Trace& trace) {
  std::set<ProcessKey> ranks;
  for (const Process& process : trace.processes) {
    if (process.window_steps().empty() || process.is_data_worker()) continue;
    ranks.insert(key_of(process));
    const dump::Header& header = process.header;
    for (const dump::Device& device : header.device()) {
      if (!device.name().empty()) values(SetupPart::gpu).insert(device.name());
    }
    if (const uint32_t version = header.driver_version()) {
      values(SetupPart::driver).insert(cuda_version(version));
    }
    if (const uint32_t version = header.runtime_version()) {
      values(SetupPart::cuda).insert(cuda_version(version));
    }
    if (const uint32_t version = header.nccl_version()) {
      values(SetupPart::nccl).insert(nccl_version(version));
    }
    if (!process.step_source.empty() && process.step_source != "auto") {
      values(SetupPart::steps).insert(process.step_source);
    }
    add_recorded(process);
  }
  if (!ranks.empty()) values(SetupPart::ranks).insert(std::to_string(ranks.size()));
}

void RunSetup::add_recorded(const Process& process) {
  const std::optional<uint32_t> activities = activities_of(process);
  if (!activities) return;
  for (size_t i = 0; i < kActivityCount; ++i) {
    if (*activities >> i & 1) {
      values(SetupPart::recorded).insert(activity_name(static_cast<Activity>(i)));
    }
  }
  for (const dump::Setting& each : process.header.setting()) {
    const bool counts = std::find(std::begin(kRecordingSettings), std::end(kRecordingSettings),
                                  each.name()) != std::end(kRecordingSettings);
    if (counts && each.source() != "default") {
      values(SetupPart::recorded).insert(fmt::format("{}={}", each.name(), each.value()));
    }
  }
}

std::vector<SetupDifference> differences(const RunSetup& base, const RunSetup& other) {
  std::vector<SetupDifference> out;
  for (const Row& row : kRows) {
    const std::set<std::string>&before = base.of(row.part), &now = other.of(row.part);
    if (before.empty() || now.empty() || before == now) continue;
    const bool is_list = row.part == SetupPart::recorded;
    out.push_back({row.part, is_list ? only_in(before, now) : listed(before),
                   is_list ? only_in(now, before) : listed(now)});
  }
  return out;
}

std::string describe(const std::vector<SetupDifference>& differences) {
  std::vector<std::string> parts;
  for (const SetupDifference& each : differences) {
    if (each.part != SetupPart::recorded) {
      parts.push_back(fmt::format("{} {} -> {}", row_of(each.part).label, joined(each.base),
                                  joined(each.other)));
      continue;
    }
    for (const auto& [side, values] :
         {std::pair("base", &each.base), std::pair("new", &each.other)}) {
      if (values->empty()) continue;
      parts.push_back(fmt::format("recorded only in {}: {}", side, joined(*values)));
    }
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace gpuprof::analysis
