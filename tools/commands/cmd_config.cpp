// SPDX-License-Identifier: Apache-2.0
// gpuprof config: the settings in force, where each comes from, what is allowed.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>

#include "formats/core/settings.h"
#include "tools/command.h"
#include "tools/console.h"
#include "tools/describe.h"

namespace gpuprof {
namespace {

void add(const std::string& item, std::string& list) {
  if (!list.empty()) list += ',';
  list += item;
}

// With how graphs are timed and how often the heap is sampled.
std::string name_in_force(Activity activity, const Config& config) {
  const std::string name = activity_name(activity);
  if (activity == Activity::heap) return fmt::format("{}:{}", name, config.heap_interval >> 10);
  if (activity != Activity::graph || config.graph_times == GraphTimes::automatic) return name;
  return name + (config.graph_times == GraphTimes::whole ? ":trace" : ":node");
}

std::string list_activities(const Config& config) {
  std::string out;
  for (size_t i = 0; i < kActivityCount; ++i) {
    if ((config.activities >> i & 1) == 0) continue;
    add(name_in_force(static_cast<Activity>(i), config), out);
  }
  return out;
}

std::string list_stacks(const Config& config) {
  std::string out;
  for (size_t i = 0; i < kStackKindCount; ++i) {
    const uint32_t every = config.stack_every[i];
    const std::string name = stack_kind_name(static_cast<StackKind>(i));
    if (every != 0) add(every == 1 ? name : fmt::format("{}:{}", name, every), out);
  }
  return out.empty() ? "none" : out;
}

// The value as the program will use it, where that says more than the text.
std::string value_in_force(const Settings& settings, const Config& config, Setting id) {
  char text[512];
  switch (id) {
    case Setting::schedule: format_schedule(config.schedule, text, sizeof(text)); return text;
    case Setting::activities: return list_activities(config);
    case Setting::stacks: return list_stacks(config);
    default: return settings.text(id);
  }
}

void print_text(const Settings& settings, const Config& config) {
  for (const SettingRow& row : kSettingRows) {
    const std::string value = value_in_force(settings, config, row.id);
    put_line("{} = {}", row.name, value.empty() ? "(none)" : value);
    put_line("    from {}; allowed: {}", settings.source_name(row.id), row.allowed);
    put_line("    {}", row.help);
  }
}

void print_json(const Settings& settings, const Config& config) {
  Json rows = Json::array();
  for (const SettingRow& row : kSettingRows) {
    rows.push_back({{"name", row.name},
                    {"value", value_in_force(settings, config, row.id)},
                    {"text", settings.text(row.id)},
                    {"source", settings.source_name(row.id)},
                    {"default", row.default_value},
                    {"allowed", row.allowed},
                    {"help", row.help}});
  }
  put(dump_json({{"schema", 1}, {"settings", std::move(rows)}}, 2) + "\n");
}

void warn_unknown(const char* name, const char* nearest, void*) {
  print_warning(nearest ? fmt::format("{} is not a setting; did you mean {}?", name, nearest)
                        : fmt::format("{} is not a setting; gpuprof config lists them", name));
}

}  // namespace

int run_config(const Command& command, int count, char** arguments) {
  CLI::App app;
  std::string format = "text";
  app.add_option("--format", format, "text or json")
      ->capture_default_str()
      ->check(one_of({"text", "json"}));
  int code = kExitDone;
  if (!parse_arguments(app, command, count, arguments, code)) return code;

  auto settings = std::make_unique<Settings>();
  auto config = std::make_unique<Config>();
  SettingError error;
  if (!settings->load_all(environ, error, warn_unknown, nullptr) ||
      !settings->parse(find_job_place(environ).rank, *config, error)) {
    throw Failure(error.text);
  }
  if (format == "json") {
    print_json(*settings, *config);
  } else {
    print_text(*settings, *config);
  }
  return kExitDone;
}

}  // namespace gpuprof
