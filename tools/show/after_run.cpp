// SPDX-License-Identifier: Apache-2.0
#include "tools/show/after_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <exception>
#include <memory>

#include "formats/core/settings.h"
#include "tools/console.h"
#include "tools/show/browser.h"
#include "tools/show/page_server.h"
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

// Whether `run` has a file of this time whose name holds `part`.
bool has_something_new(const std::string& run, fs::file_time_type started, const char* part) {
  std::error_code failed;
  for (fs::directory_iterator at(run, failed), none; !failed && at != none; at.increment(failed)) {
    std::error_code ignored;
    if (at->path().filename().string().find(part) != std::string::npos &&
        at->last_write_time(ignored) >= started) {
      return true;
    }
  }
  return false;
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

void show(const std::string& run, const std::string& format, bool open) {
  if (!format.empty()) report_run(run, format);
  if (!open) return;
  if (is_remote_session()) {
    print_note(fmt::format("over ssh: gpuprof open {}", shell_quoted(run)));
  } else {
    show_page(write_page({run}, ""), kPagePort);
  }
}

}  // namespace

void after_run(const ProgramRun& run, const std::string& format, bool open) {
  const bool asked = !format.empty() || open;
  const std::vector<char*> environment = pointers(run.environment);
  const auto in = settings_of(environment);
  if (!in) return;
  SettingError error;
  const std::string output = output_folder(*in, environment, run.end.pid, error);
  const std::string latest = output + "/latest";
  if (run.end.signal && has_something_new(latest, run.started, ".ring")) {
    print_note(fmt::format("killed by {} (signal {}); what was recorded: gpuprof report {}",
                           ::strsignal(run.end.signal), run.end.signal, shell_quoted(latest)));
  }
  // One of several ranks that were started by this command each leaves the report to rank 0.
  if (!asked || in->place.rank > 0) return;
  if (output.empty()) {
    return print_note(
        fmt::format("the run's folder is not known here: GPUPROF_OUTPUT={}", error.text));
  }
  if (!has_something_new(latest, run.started, ".gpuprof")) {
    return print_note(
        fmt::format("nothing to report in {}: {}", shell_quoted(output), why_nothing(run, *in)));
  }
  try {
    show(latest, format, open);
  } catch (const std::exception& problem) {
    print_error(problem.what());
  }
}

}  // namespace gpuprof
