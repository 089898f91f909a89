// SPDX-License-Identifier: Apache-2.0
#include "formats/trace/activities.h"

#include <memory>

namespace gpuprof {

std::optional<uint32_t> activities_of(const Process& process) {
  if (process.source != Source::dump || process.header.setting_size() == 0) return std::nullopt;
  const auto settings = std::make_unique<Settings>();
  SettingError error;
  for (const dump::Setting& each : process.header.setting()) {
    const bool tells = each.name() == "GPUPROF_PRESET" || each.name() == "GPUPROF_ACTIVITIES";
    if (tells && !settings->set(each.name(), each.value(), SettingSource::environment, error)) {
      return std::nullopt;
    }
  }
  const auto config = std::make_unique<Config>();
  if (!settings->parse(-1, *config, error)) return std::nullopt;
  return config->activities;
}

bool is_left_out(const Process& process, Activity activity) {
  const std::optional<uint32_t> recorded = activities_of(process);
  return recorded && (*recorded >> static_cast<uint32_t>(activity) & 1) == 0;
}

}  // namespace gpuprof
