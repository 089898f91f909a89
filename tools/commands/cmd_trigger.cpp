// SPDX-License-Identifier: Apache-2.0
// gpuprof trigger: a window in running processes, at the same step on all ranks; recording off and
// on.
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "formats/core/control.h"
#include "formats/io/file_bytes.h"
#include "tools/command.h"
#include "tools/console.h"
#include "tools/describe.h"
#include "tools/live_processes.h"
#include "tools/shell_text.h"

namespace gpuprof {
namespace {

constexpr uint64_t kDefaultSteps = 10;
constexpr uint64_t kMostSteps = 1000000;

LiveRun find_target(const std::string& target) {
  const bool number = target.find_first_not_of("0123456789") == std::string::npos &&
                      !target.empty() && target.size() < 10;
  if (std::filesystem::is_directory(target)) {
    std::string note;
    LiveRun run = find_live_run(target, note);
    if (!note.empty()) print_note(note);
    if (!run.processes.empty()) return run;
    throw Failure(
        fmt::format("trigger: {}: no profiled process of this user is running on this machine that "
                    "writes there",
                    target));
  }
  if (!number) {
    throw Failure(fmt::format(
        "trigger: {}: must be a process id, or the directory of a run's dumps", target));
  }
  LiveRun run = find_live_processes(static_cast<uint32_t>(std::stoul(target)));
  if (run.processes.empty()) {
    throw Failure(
        fmt::format("trigger: {}: neither this process nor one below it is profiled; "
                    "start it with gpuprof run, and GPUPROF_MODE=armed to wait for this",
                    target));
  }
  return run;
}

// How many steps ahead a request must be for all ranks to have read it in time.
struct Notice {
  uint64_t newest = 0;  // the step that the foremost rank is at
  uint64_t steps = 0;
  const LiveProcess* foremost = nullptr;  // null: no step has been counted anywhere
};

double notice_seconds(const LiveRun& run) {
  uint32_t poll_ms = kControlPollMs;
  for (const auto& process : run.processes) {
    poll_ms = std::max(poll_ms, process->header().control_poll_ms);
  }
  return 4e-3 * poll_ms;
}

// `times`: as much as that, where steps have become faster than they were.
Notice needed_notice(const LiveRun& run, int times = 1) {
  Notice notice;
  double step = 0;
  for (const auto& process : run.processes) {
    const uint64_t boundaries = process->boundaries();
    const double seconds = process->step_seconds();
    if (seconds > 0 && (step == 0 || seconds < step)) step = seconds;
    if (boundaries > notice.newest) {
      notice.newest = boundaries - 1;
      notice.foremost = process.get();
    } else if (boundaries > 0 && !notice.foremost) {
      notice.foremost = process.get();
    }
  }
  if (step == 0) {
    notice.foremost = nullptr;
    return notice;
  }
  // At least one whole step more than the one that is nearly over. Far more than a second's worth
  // of steps of a microsecond would only mean that no real step is counted.
  notice.steps =
      static_cast<uint64_t>(std::min(1e6, std::ceil(times * notice_seconds(run) / step))) + 1;
  return notice;
}

std::string ranks_of(const LiveRun& run) {
  if (run.processes.size() == 1) return run.processes[0]->name();
  return fmt::format("{} processes, {} to {}", run.processes.size(), run.processes.front()->name(),
                     run.processes.back()->name());
}

void check_recording(const LiveRun& run, const std::string& target) {
  for (const auto& process : run.processes) {
    if (process->header().recording_off.load() == 0) continue;
    throw Failure(fmt::format("trigger: recording is switched off in {}; gpuprof trigger {} --on",
                              process->name(), shell_quoted(target)));
  }
}

uint64_t choose_step(const LiveRun& run, uint64_t asked, bool was_asked, int times = 1) {
  const Notice notice = needed_notice(run, times);
  if (!notice.foremost) {
    if (was_asked) return asked;
    throw Failure(
        "trigger: no step has been counted yet; wait for one, or set GPUPROF_STEP to what marks a "
        "step in this program (gpuprof config lists the sources)");
  }
  const uint64_t nearest = notice.newest + notice.steps;
  if (!was_asked) return nearest;
  if (asked >= nearest) return asked;
  throw Failure(
      fmt::format("trigger: --at-step {}: {} is at step {}; from now the first step that "
                  "all ranks hear of in time is {}",
                  asked, notice.foremost->name(), notice.newest, nearest));
}

void write_request(const LiveRun& run, const ControlRequest& request) {
  ::umask(077);  // a request that others could write is not read
  char text[kControlFileBytes];
  const std::string_view bytes(text, format_control(request, text));
  std::vector<std::string> files;
  if (!run.directory.empty()) {
    files.push_back(run.directory + "/" + kRunControlFile);
  } else {
    constexpr size_t kSuffix = std::string_view(".gpuprof.ring").size();
    for (const auto& process : run.processes) {
      const std::string& ring = process->ring();
      files.push_back(ring.substr(0, ring.size() - kSuffix) + kProcessControlSuffix);
    }
  }
  for (const std::string& path : files) {
    OutputFile file(path);
    file.write(bytes);
    if (!file.commit()) throw Failure(file.error());
  }
}

const char* why_not(const LiveProcess& process, const ControlRequest& request) {
  const RingHeader& header = process.header();
  if (header.control_id.load(std::memory_order_acquire) != request.id) {
    return process.is_running() ? "does not answer" : "has ended";
  }
  switch (static_cast<ControlResult>(header.control_result.load())) {
    case ControlResult::accepted: return nullptr;
    case ControlResult::late: return "had passed that step when it heard of it";
    case ControlResult::off: return "has recording switched off";
    case ControlResult::busy: return "is recording a triggered window";
    case ControlResult::no_steps:
      return "records what cudaProfilerStart and Stop bracket (GPUPROF_STEP=profiler)";
    case ControlResult::none: break;
  }
  return "gives an answer that this gpuprof does not know";
}

bool was_late(const LiveProcess& process, const ControlRequest& request) {
  const RingHeader& header = process.header();
  return header.control_id.load(std::memory_order_acquire) == request.id &&
         static_cast<ControlResult>(header.control_result.load()) == ControlResult::late;
}

void wait_for_answers(const LiveRun& run, const ControlRequest& request) {
  using Clock = std::chrono::steady_clock;
  const auto deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(
                         std::chrono::duration<double>(2 * notice_seconds(run) + 3));
  const auto answered = [&](const auto& process) {
    return process->header().control_id.load(std::memory_order_acquire) >= request.id;
  };
  while (!std::all_of(run.processes.begin(), run.processes.end(), answered) &&
         Clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

// The number of processes that took the request; says why the others did not.
size_t count_accepted(const LiveRun& run, const ControlRequest& request) {
  size_t accepted = 0;
  for (const auto& process : run.processes) {
    const char* const reason = why_not(*process, request);
    accepted += reason == nullptr;
    if (reason) print_warning(fmt::format("trigger: {} {}", process->name(), reason));
  }
  return accepted;
}

uint64_t new_id(const LiveRun& run) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  uint64_t id = static_cast<uint64_t>(now.tv_sec) * 1000000000 + static_cast<uint64_t>(now.tv_nsec);
  for (const auto& process : run.processes) {
    id = std::max(id, process->header().control_id.load() + 1);
  }
  return id;
}

// Asks for a window from `first` on, or, where none is named, from the next step that all can make.
// Where all had passed that, their steps having become faster, it asks for a later one; not where
// there are others that cannot be seen from here, which may have taken the request.
void request_window(const LiveRun& run, ControlRequest& request, const CLI::Option& first) {
  constexpr int kMostTimes = 16;
  const auto late = [&](const auto& process) { return was_late(*process, request); };
  for (int times = 1; times <= kMostTimes; times *= 4) {
    request.id = new_id(run);
    request.step =
        choose_step(run, first.count() ? first.as<uint64_t>() : 0, first.count() > 0, times);
    write_request(run, request);
    wait_for_answers(run, request);
    if (first.count() || run.elsewhere != 0 ||
        !std::all_of(run.processes.begin(), run.processes.end(), late))
      break;
  }
}

void print_json(const LiveRun& run, const ControlRequest& request) {
  const bool window = request.command == ControlCommand::window;
  Json out = {{"schema", 1},
              {"request", window                                   ? "window"
                          : request.command == ControlCommand::off ? "off"
                                                                   : "on"},
              {"directory", run.directory},
              {"elsewhere", run.elsewhere},
              {"processes", Json::array()}};
  if (window) {
    out["first_step"] = request.step;
    out["last_step"] = request.step + request.steps - 1;
  }
  for (const auto& process : run.processes) {
    const char* const reason = why_not(*process, request);
    out["processes"].push_back({{"name", process->name()},
                                {"pid", process->pid()},
                                {"accepted", reason == nullptr},
                                {"reason", reason ? reason : ""}});
  }
  put(dump_json(out, 2) + "\n");
}

bool is_on_everywhere(const LiveRun& run) {
  return std::none_of(run.processes.begin(), run.processes.end(), [](const auto& process) {
    return process->header().recording_off.load() != 0;
  });
}

void say_what_follows(const LiveRun& run, const ControlRequest& request, bool was_on) {
  const std::string who = ranks_of(run);
  if (request.command == ControlCommand::off) {
    put_line("recording is off in {}", who);
  } else if (request.command == ControlCommand::on && was_on) {
    put_line("recording was on already in {}", who);
  } else if (request.command == ControlCommand::on) {
    put_line("recording is on in {} from step {}", who, request.step);
  } else {
    put_line("steps {}-{} will be recorded in {}{}", request.step, request.step + request.steps - 1,
             who, run.directory.empty() ? "" : "; dumps go to " + run.directory);
  }
  if (run.elsewhere != 0) {
    print_note(
        fmt::format("{} processes on other machines are asked too, but cannot be seen from "
                    "here; they must be near the same step",
                    run.elsewhere));
  }
}

}  // namespace

int run_trigger(const Command& command, int count, char** arguments) {
  CLI::App app;
  std::string target;
  uint64_t at_step = 0, steps = kDefaultSteps;
  bool off = false, on = false;
  app.add_option("PID|DIR", target, "a process (with all below it), or a run's directory")
      ->required();
  auto* const at_option = app.add_option("--at-step", at_step, "first step of the window")
                              ->default_str("the next one that all ranks can make");
  auto* const steps_option = app.add_option("--steps", steps, "how many steps")
                                 ->check(number_between(1, kMostSteps, true))
                                 ->default_str("10");
  auto* const off_option =
      app.add_flag("--off", off, "record nothing from now on, also in processes that start later");
  auto* const on_option = app.add_flag("--on", on, "record again after --off");
  off_option->excludes(at_option)->excludes(steps_option)->excludes(on_option);
  on_option->excludes(at_option)->excludes(steps_option);
  std::string format = "text";
  app.add_option("--format", format, "text or json")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "json"}));
  app.footer("Exits 0 when all processes took the request, 1 when some did not, 2 when none did.");
  int code = kExitDone;
  if (!parse_arguments(app, command, count, arguments, code)) return code;

  const LiveRun run = find_target(target);
  const bool was_on = is_on_everywhere(run);
  ControlRequest request{new_id(run), ControlCommand::window, 0, steps};
  if (off || on) {
    request.command = off ? ControlCommand::off : ControlCommand::on;
    const Notice notice = needed_notice(run);
    if (on && notice.foremost) request.step = notice.newest + notice.steps;
    write_request(run, request);
    wait_for_answers(run, request);
  } else {
    check_recording(run, target);
    request_window(run, request, *at_option);
  }
  if (format == "json") print_json(run, request);
  const size_t accepted = count_accepted(run, request);
  if (accepted == 0) throw Failure("trigger: no process took the request");
  if (format == "text") say_what_follows(run, request, was_on);
  return accepted == run.processes.size() ? kExitDone : kExitGateFailed;
}

}  // namespace gpuprof
