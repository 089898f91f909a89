// SPDX-License-Identifier: Apache-2.0
// gpuprof run: starts a program with the library preloaded and the settings in its environment.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "formats/core/settings.h"
#include "formats/core/text.h"
#include "formats/io/unfinished.h"
#include "tools/child.h"
#include "tools/command.h"
#include "tools/console.h"
#include "tools/library_path.h"
#include "tools/output_place.h"
#include "tools/program_file.h"
#include "tools/show/after_run.h"

namespace gpuprof {
namespace {

namespace fs = std::filesystem;

struct Flag {
  const char* option;
  Setting setting;
  const char* help;
};

constexpr Flag kFlags[] = {
    {"-o,--output", Setting::output, "directory for the dumps (GPUPROF_OUTPUT)"},
    {"--schedule", Setting::schedule, "which steps are recorded (GPUPROF_SCHEDULE)"},
    {"--step", Setting::step, "what marks a step (GPUPROF_STEP)"},
    {"--preset", Setting::preset, "light, default or full (GPUPROF_PRESET)"},
    {"--activities", Setting::activities, "what is recorded (GPUPROF_ACTIVITIES)"},
    {"--ranks", Setting::ranks, "which ranks are profiled (GPUPROF_RANKS)"},
};

using Assignments = std::vector<std::pair<std::string, std::string>>;

// Sets NAME in a list of NAME=VALUE.
void assign(std::vector<std::string>& environment, const std::string& name,
            const std::string& value) {
  const std::string prefix = name + "=";
  std::erase_if(environment, [&](const std::string& entry) { return entry.starts_with(prefix); });
  environment.push_back(prefix + value);
}

std::string value_of(const std::vector<std::string>& environment, const std::string& name) {
  const std::string prefix = name + "=";
  for (const std::string& entry : environment) {
    if (entry.starts_with(prefix)) return entry.substr(prefix.size());
  }
  return "";
}

Assignments parse_sets(const std::vector<std::string>& texts) {
  Assignments out;
  auto settings = std::make_unique<Settings>();
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos) {
      throw Failure(
          fmt::format("run: --set \"{}\": must be NAME=VALUE, as in GPUPROF_LOG=info", text));
    }
    out.emplace_back(text.substr(0, equals), text.substr(equals + 1));
    SettingError error;  // a name that is not known is no more than a warning elsewhere
    if (!settings->set(out.back().first, out.back().second, SettingSource::environment, error)) {
      throw Failure(error.text);
    }
  }
  return out;
}

// `pattern` may hold %-sequences; the directory in front of it is plain text, so its % are doubled.
std::string absolute_pattern(const std::string& pattern) {
  const JobPlace place = find_job_place(environ);
  char expanded[4096];
  SettingError error;
  if (!expand_output(pattern.c_str(), place, "host", 0, environ, expanded, sizeof(expanded),
                     error)) {
    // What it lacks may be set where the program runs. What it begins with may be known here.
    copy_text(pattern.substr(0, pattern.find('%')), expanded, sizeof expanded);
    if (expanded[0] == '\0') return pattern;
  }
  if (expanded[0] == '/') return pattern;
  std::string folder;
  for (const char c : fs::current_path().string()) {
    folder += c == '%' ? "%%" : std::string(1, c);
  }
  return folder + "/" + pattern;
}

// Refused here rather than found out when the program has run. What is known only in the program,
// and folders that may be only where it runs, on another machine, are not looked at.
void check_output(const Config& config, char* const* environment) {
  if (config.mode == Mode::off || !config.rank_selected) return;
  const OutputPlace place = look_at_output(config, environment);
  if (place.path.empty() || place.reason.empty() || place.folder == "/") return;
  throw Failure(
      fmt::format("GPUPROF_OUTPUT=\"{}\": {} cannot hold dumps: {}; give -o a directory that can",
                  config.output, place.folder, place.reason));
}

// A program that changes its directory must still find and write what was named here.
Assignments absolute_paths(const Settings& settings, const Config& config) {
  Assignments out;
  const auto name = [](Setting id) { return kSettingRows[static_cast<size_t>(id)].name; };
  const std::string output = absolute_pattern(config.output);
  out.emplace_back(name(Setting::output), output);
  if (config.scratch[0] != '\0') {
    out.emplace_back(name(Setting::scratch), absolute_pattern(config.scratch));
  }
  const std::string cupti = config.cupti;
  if (!cupti.empty() && cupti != "off") {
    if (access(config.cupti, R_OK) != 0) {
      throw Failure(
          fmt::format("GPUPROF_CUPTI=\"{}\": cannot be read; give the path of libcupti.so, "
                      "or auto, or off",
                      cupti));
    }
    out.emplace_back(name(Setting::cupti), fs::absolute(cupti).string());
  }
  const std::string file = settings.text(Setting::config);
  if (!file.empty()) out.emplace_back(name(Setting::config), fs::absolute(file).string());
  return out;
}

// Checks all settings as the library will find them in `environment`; throws Failure on a bad one.
Assignments check_settings(const std::vector<std::string>& environment) {
  const std::vector<char*> entries = pointers(environment);
  auto settings = std::make_unique<Settings>();
  auto config = std::make_unique<Config>();
  SettingError error;
  if (!settings->load_all(entries.data(), error, nullptr, nullptr) ||
      !settings->parse(find_job_place(entries.data()).rank, *config, error)) {
    throw Failure(error.text);
  }
  check_output(*config, entries.data());
  return absolute_paths(*settings, *config);
}

std::vector<std::string> child_environment(const Assignments& flags, const std::string& library) {
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) out.push_back(*entry);
  for (const auto& [name, value] : flags) assign(out, name, value);
  for (const auto& [name, value] : check_settings(out)) assign(out, name, value);
  const std::string before = value_of(out, "LD_PRELOAD");
  if ((":" + before + ":").find(":" + library + ":") == std::string::npos) {
    assign(out, "LD_PRELOAD", before.empty() ? library : library + ":" + before);
  }
  return out;
}

int64_t realtime_ns() {
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since_epoch).count();
}

// False: it runs unprofiled, and a line says why.
bool check_program(const std::string& name) {
  const std::string path = find_program(name);
  const std::string reason = path.empty() ? "" : why_not_preloadable(path);
  if (!reason.empty()) print_warning(fmt::format("{} runs unprofiled: {}", path, reason));
  return reason.empty();
}

}  // namespace

int run_run(const Command& command, int count, char** arguments) {
  // Everything after -- is the program's, and everything from the first word that is no option.
  char** separator = std::find_if(arguments, arguments + count,
                                  [](const char* text) { return std::string_view(text) == "--"; });
  const int own_count = static_cast<int>(separator - arguments);
  const int skipped = std::min(count, own_count + 1);
  std::vector<std::string> program(arguments + skipped, arguments + count);

  CLI::App app;
  std::string values[std::size(kFlags)];
  std::vector<std::string> sets;
  std::string report;
  bool all = false, open = false;
  for (size_t i = 0; i < std::size(kFlags); ++i) {
    app.add_option(kFlags[i].option, values[i], kFlags[i].help)
        ->default_str(kSettingRows[static_cast<size_t>(kFlags[i].setting)].default_value);
  }
  app.add_flag("--all", all, "the whole program is recorded, as by --schedule all");
  app.add_option("--set", sets, "any setting, as NAME=VALUE; gpuprof config lists them")
      ->allow_extra_args(false);
  app.add_flag("--report{verdict}", report,
               "when it ends: the verdict, in ten lines at most; --report=text, =json or =html: "
               "the report, the last two into the run's folder")
      ->check(one_of({"verdict", "text", "json", "html"}));
  app.add_flag("--open", open, "when it ends: the report's page in the browser");
  app.prefix_command();  // a program without -- before it
  int code = kExitDone;
  if (!parse_arguments(app, command, own_count, arguments, code)) return code;
  const std::vector<std::string> stray = app.remaining();
  if (!stray.empty() && stray[0].starts_with('-')) {
    throw Failure(fmt::format("run: {} is no option; see gpuprof run --help", stray[0]));
  }
  if (!stray.empty()) {
    program = stray;  // a -- after it is its own
    program.insert(program.end(), separator, arguments + count);
  }
  if (program.empty()) {
    throw Failure("run: no program given, as in gpuprof run python train.py");
  }

  Assignments flags;
  if (all && app.count("--schedule") != 0) {
    throw Failure("run: --all and --schedule exclude each other; leave one out");
  }
  if (all) {
    flags.emplace_back(kSettingRows[static_cast<size_t>(Setting::schedule)].name, "all");
  }
  for (size_t i = 0; i < std::size(kFlags); ++i) {
    if (app.count(CLI::detail::split(kFlags[i].option, ',').back()) == 0) continue;
    flags.emplace_back(kSettingRows[static_cast<size_t>(kFlags[i].setting)].name, values[i]);
  }
  for (auto& assignment : parse_sets(sets)) flags.push_back(std::move(assignment));

  const std::string library = find_preloadable_library();
  ProgramRun run;
  run.environment = child_environment(flags, library);
  run.preloadable = check_program(program[0]);
  flush_output();
  run.started_ns = realtime_ns();
  run.end = run_child(program, run.environment);
  if (!run.end.started) return run.end.code;
  remove_unfinished_on_signals();  // what is left is this command's own work
  after_run(run, app.count("--report") ? report : "", open);
  return run.end.code;
}

}  // namespace gpuprof
