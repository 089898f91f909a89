// SPDX-License-Identifier: Apache-2.0
#include "formats/trace/activities.h"

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <string_view>
#include <utility>

namespace gpuprof {

namespace {

// The settings of these names that a dump keeps. Null: one of them cannot be read.
std::unique_ptr<Config> config_of(const Process& process,
                                  std::initializer_list<std::string_view> names) {
  const auto settings = std::make_unique<Settings>();
  SettingError error;
  for (const dump::Setting& each : process.header.setting()) {
    const bool tells = std::find(names.begin(), names.end(), each.name()) != names.end();
    if (tells && !settings->set(each.name(), each.value(), SettingSource::environment, error)) {
      return nullptr;
    }
  }
  auto config = std::make_unique<Config>();
  return settings->parse(-1, *config, error) ? std::move(config) : nullptr;
}

}  // namespace

std::optional<uint32_t> activities_of(const Process& process) {
  if (process.source != Source::dump || process.header.setting_size() == 0) return std::nullopt;
  const auto config = config_of(process, {"GPUPROF_PRESET", "GPUPROF_ACTIVITIES"});
  if (!config) return std::nullopt;
  return config->activities;
}

bool is_left_out(const Process& process, Activity activity) {
  const std::optional<uint32_t> recorded = activities_of(process);
  return recorded && (*recorded >> static_cast<uint32_t>(activity) & 1) == 0;
}

bool has_arguments(const Process& process) {
  if (process.source != Source::dump) return false;  // a name at best
  // A list with blanks is itself kept out, and cannot be read.
  const auto config = config_of(process, {"GPUPROF_REDACT"});
  return config && (config->redact >> static_cast<uint32_t>(Redact::command) & 1) == 0;
}

}  // namespace gpuprof
