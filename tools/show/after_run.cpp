// SPDX-License-Identifier: Apache-2.0
#include "tools/show/after_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>

#include "formats/core/runs/run_files.h"
#include "formats/core/settings.h"
#include "tools/console.h"
#include "tools/show/browser.h"
#include "tools/show/page_server.h"
#include "tools/show/run_folder.h"
#include "tools/show/show_run.h"

namespace gpuprof {
namespace {

namespace fs = std::filesystem;

// The settings that the program had, from here: a launcher may have set more of its ranks.
struct ProgramSettings {
  JobPlace place;
  Settings settings;
  Config config;
};

// Null where they cannot be read; `gpuprof run` has read them before.
std::unique_ptr<ProgramSettings> settings_of(const std::vector<char*>& environment) {
  auto out = std::make_unique<ProgramSettings>();
  out->place = find_job_place(environment.data());
  SettingError error;
  const bool good = out->settings.load_all(environment.data(), error, nullptr, nullptr) &&
                    out->settings.parse(out->place.rank, out->config, error);
  return good ? std::move(out) : nullptr;
}

// The folder that holds the runs; empty: not known here, and `error` says why.
std::string output_folder(const ProgramSettings& in, const std::vector<char*>& environment, int pid,
                          SettingError& error) {
  char host[256] = "", output[4096];
  ::gethostname(host, sizeof host - 1);
  const bool known = expand_output(in.config.output, in.place, host, pid, environment.data(),
                                   output, sizeof output, error);
  return known ? output : "";
}

// As the library names it in the program itself; a process below may have another rank or number.
std::string named_run(const ProgramSettings& in, const std::vector<char*>& environment, int pid) {
  char host[256] = "", run[4096] = "";
  ::gethostname(host, sizeof host - 1);
  SettingError unknown;
  if (!in.config.run[0]) return in.place.job;
  if (!expand_output(in.config.run, in.place, host, pid, environment.data(), run, sizeof run,
                     unknown)) {
    return "";
  }
  make_folder_name(run);
  return run;
}

RunFolder folder_of(const ProgramRun& run, const ProgramSettings& in,
                    const std::vector<char*>& environment, const std::string& output) {
  if (output.empty()) return {};
  const bool fixed = in.config.run[0] && !std::strchr(in.config.run, '%');
  return find_run_folder(
      output, named_run(in, environment, run.end.pid), fixed,
      {run.started_ns, static_cast<uint32_t>(run.end.pid), static_cast<uint32_t>(::getpid())});
}

// A path in the run's folder, by `latest` where that leads there now.
std::string shown(const std::string& path, const std::string& folder, const std::string& output) {
  const std::string latest = output + "/latest";
  std::error_code error;
  if (!path.starts_with(folder) || !fs::equivalent(latest, folder, error) || error) return path;
  return latest + path.substr(folder.size());
}

std::string why_nothing(const ProgramRun& run, const ProgramSettings& in) {
  if (!run.preloadable) return "the program ran unprofiled";
  if (in.config.mode == Mode::off) return "GPUPROF_MODE=off";
  const std::string ranks = in.settings.text(Setting::ranks);
  if (!in.config.rank_selected) {
    return fmt::format("GPUPROF_RANKS={} leaves rank {} out", ranks, in.place.rank);
  }
  if (in.config.mode == Mode::armed) {
    return "GPUPROF_MODE=armed waits for gpuprof trigger, which recorded no window";
  }
  if (ranks != "all") {
    return fmt::format("none of the ranks that GPUPROF_RANKS={} names made a CUDA call", ranks);
  }
  return "no CUDA call was seen, or a line above says what failed";
}

void show(const std::string& run, const std::string& format, bool open, const NamePath& name) {
  if (!format.empty()) report_run(run, format, name);
  if (!open) return;
  if (is_remote_session()) {
    print_note(fmt::format("over ssh: gpuprof open {}", shell_quoted(name(run))));
  } else {
    show_page(name(write_page({run}, "")), kPagePort);
  }
}

// False: a line says why there is nothing to show.
bool has_something_to_show(const RunFolder& folder, const std::string& output,
                           const ProgramRun& run, const ProgramSettings& in, const NamePath& name) {
  if (!folder.others.empty()) {
    std::string names;
    for (const std::string& other : folder.others) names += " " + shell_quoted(other);
    print_note(fmt::format("which of these runs is the program's is not known here:{}", names));
  } else if (folder.path.empty()) {
    print_note(
        fmt::format("nothing to report in {}: {}", shell_quoted(output), why_nothing(run, in)));
  } else if (!folder.sure) {
    print_note(fmt::format("{} is taken for the program's run: no other began and ended meanwhile",
                           shell_quoted(name(folder.path))));
  }
  return !folder.path.empty();
}

// A program that ended without the library's end of the session.
void say_what_it_left(const ProgramRun& run, const RunFolder& folder, const NamePath& name) {
  const auto pid = static_cast<uint32_t>(run.end.pid);
  const bool killed = run.end.signal != 0;
  if (folder.path.empty() || !has_ring_since(folder.path, run.started_ns, killed ? 0 : pid)) return;
  const std::string how =
      killed ? fmt::format("ended by signal {} ({})", run.end.signal, ::strsignal(run.end.signal))
             : "ended without exit handlers, as by a bare system call (exit_group) of Go programs";
  print_note(fmt::format("{}; what was recorded: gpuprof report {}", how,
                         shell_quoted(name(folder.path))));
}

}  // namespace

void after_run(const ProgramRun& run, const std::string& format, bool open) {
  const bool asked = !format.empty() || open;
  const std::vector<char*> environment = pointers(run.environment);
  const auto in = settings_of(environment);
  if (!in) return;
  SettingError error;
  const std::string output = output_folder(*in, environment, run.end.pid, error);
  const RunFolder folder = folder_of(run, *in, environment, output);
  const NamePath name = [&](const std::string& path) { return shown(path, folder.path, output); };
  say_what_it_left(run, folder, name);
  // One of several ranks that were started by this command each leaves the report to rank 0.
  if (!asked || in->place.rank > 0) return;
  if (output.empty()) {
    return print_note(
        fmt::format("the run's folder is not known here: GPUPROF_OUTPUT={}", error.text));
  }
  if (!has_something_to_show(folder, output, run, *in, name)) return;
  try {
    show(folder.path, format, open, name);
  } catch (const std::exception& problem) {
    print_error(problem.what());
  }
}

}  // namespace gpuprof
