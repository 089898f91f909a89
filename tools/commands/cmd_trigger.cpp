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

#include "formats/core/trigger/request.h"
#include "formats/io/file_bytes.h"
#include "tools/command.h"
#include "tools/console.h"
#include "tools/describe.h"
#include "tools/live_processes.h"

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
    if (run.size() > 0) return run;
    throw Failure(fmt::format(
        "trigger: {}: no profiled process of this user is running that writes there; on "
        "other machines only armed ones can be seen (GPUPROF_MODE=armed)",
        target));
  }
  if (!number) {
    throw Failure(fmt::format(
        "trigger: {}: must be a process id, or the directory of a run's dumps", target));
  }
  LiveRun run = find_live_processes(static_cast<uint32_t>(std::stoul(target)));
  if (run.size() == 0) {
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
  std::string foremost;  // empty: no step has been counted anywhere
};

double notice_seconds(const LiveRun& run) {
  uint64_t poll_ms = kControlPollMs;
  for (const auto& process : run.processes) {
    poll_ms = std::max<uint64_t>(poll_ms, process->header().control_poll_ms);
  }
  for (const RemoteProcess& remote : run.remote) poll_ms = std::max(poll_ms, remote.state.poll_ms);
  return 4e-3 * static_cast<double>(poll_ms);
}

// `times`: as much as that, where steps have become faster than they were.
Notice needed_notice(const LiveRun& run, int times = 1) {
  Notice notice;
  double step = 0;
  // `ahead`: how far it may have gone on since.
  const auto look = [&](uint64_t boundaries, double seconds, double ahead, const auto& process) {
    if (boundaries == 0) return;
    if (seconds > 0 && (step == 0 || seconds < step)) step = seconds;
    uint64_t at = boundaries - 1;
    if (seconds > 0) at += static_cast<uint64_t>(std::min(1e6, ahead / seconds));
    if (at <= notice.newest && !notice.foremost.empty()) return;
    notice.newest = at;
    notice.foremost = process.name();
  };
  for (const auto& process : run.processes) {
    look(process->boundaries(), process->step_seconds(), 0, *process);
  }
  for (const RemoteProcess& remote : run.remote) {
    if (!remote.alive) continue;
    look(remote.state.boundaries, static_cast<double>(remote.state.step_ns) * 1e-9,
         kLiveStateMs * 1e-3, remote);
  }
  if (step == 0) {
    notice.foremost.clear();
    return notice;
  }
  // At least one whole step more than the one that is nearly over. Far more than a second's worth
  // of steps of a microsecond would only mean that no real step is counted.
  notice.steps =
      static_cast<uint64_t>(std::min(1e6, std::ceil(times * notice_seconds(run) / step))) + 1;
  return notice;
}

// Those of this machine first.
std::vector<std::string> names_of(const LiveRun& run) {
  std::vector<std::string> out;
  for (const auto& process : run.processes) out.push_back(process->name());
  for (const RemoteProcess& remote : run.remote) out.push_back(remote.name());
  return out;
}

std::string ranks_of(const LiveRun& run) {
  const std::vector<std::string> names = names_of(run);
  if (names.size() == 1) return names[0];
  return fmt::format("{} processes, {} to {}", names.size(), names.front(), names.back());
}

void check_recording(const LiveRun& run, const std::string& target) {
  for (const auto& process : run.processes) {
    if (process->header().recording_off.load() == 0) continue;
    throw Failure(fmt::format("trigger: recording is switched off in {}; gpuprof trigger {} --on",
                              process->name(), shell_quoted(target)));
  }
  for (const RemoteProcess& remote : run.remote) {
    if (!remote.alive || remote.state.recording_off == 0) continue;
    throw Failure(fmt::format("trigger: recording is switched off in {}; gpuprof trigger {} --on",
                              remote.name(), shell_quoted(target)));
  }
}

uint64_t choose_step(const LiveRun& run, uint64_t asked, bool was_asked, int times = 1) {
  const Notice notice = needed_notice(run, times);
  if (notice.foremost.empty()) {
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
                  asked, notice.foremost, notice.newest, nearest));
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
    constexpr size_t kState = std::string_view(kLiveStateSuffix).size();
    for (const RemoteProcess& process : run.remote) {
      files.push_back(process.file.substr(0, process.file.size() - kState) + kProcessControlSuffix);
    }
  }
  for (const std::string& path : files) {
    OutputFile file(path, Compression::none, Links::replaced);
    file.write(bytes);
    if (!file.commit()) throw Failure(file.error());
  }
}

// What a process said to the newest request that it read.
struct Answer {
  std::string name, host;  // host: of another machine
  uint64_t pid = 0, id = 0;
  ControlResult result = ControlResult::none;
  const char* silence = "does not answer";  // why there is none

  bool is_to(const ControlRequest& request) const { return id == request.id; }
};

std::vector<Answer> answers_of(const LiveRun& run) {
  std::vector<Answer> out;
  for (const auto& process : run.processes) {
    const RingHeader& header = process->header();
    const uint64_t id = header.control_id.load(std::memory_order_acquire);
    const auto result = static_cast<ControlResult>(header.control_result.load());
    out.push_back({process->name(), "", process->pid(), id, result,
                   process->is_running() ? "does not answer" : "has ended"});
  }
  for (const RemoteProcess& remote : run.remote) {
    out.push_back({remote.name(), remote.host, remote.state.process_id, remote.state.control_id,
                   static_cast<ControlResult>(remote.state.control_result),
                   remote.alive ? "does not answer" : "gives no sign of life"});
  }
  return out;
}

// Null: it took the request.
const char* why_not(const Answer& answer, const ControlRequest& request) {
  if (!answer.is_to(request)) return answer.silence;
  switch (answer.result) {
    case ControlResult::accepted:
    case ControlResult::replaced: return nullptr;
    case ControlResult::late: return "had passed that step when it heard of it";
    case ControlResult::off: return "has recording switched off";
    case ControlResult::busy: return "is recording a triggered window";
    case ControlResult::no_steps:
      return "records what cudaProfilerStart and Stop bracket (GPUPROF_STEP=profiler)";
    case ControlResult::whole: return "records the whole program (GPUPROF_SCHEDULE=all)";
    case ControlResult::no_room: return "has no room on its disk for the records";
    case ControlResult::none: break;
  }
  return "gives an answer that this gpuprof does not know";
}

void wait_for_answers(LiveRun& run, const ControlRequest& request) {
  using Clock = std::chrono::steady_clock;
  // What another machine writes is seen later.
  const double seconds = 2 * notice_seconds(run) + (run.remote.empty() ? 3 : 6);
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                           std::chrono::duration<double>(seconds));
  const auto all_answered = [&] {
    bool out = std::all_of(run.processes.begin(), run.processes.end(), [&](const auto& process) {
      return process->header().control_id.load(std::memory_order_acquire) >= request.id;
    });
    for (RemoteProcess& remote : run.remote) {
      if (!remote.alive || remote.state.control_id >= request.id) continue;
      remote.read();
      out = out && remote.state.control_id >= request.id;
    }
    return out;
  };
  while (!all_answered() && Clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

// The number of processes that took the request; says why the others did not.
size_t count_accepted(const LiveRun& run, const ControlRequest& request) {
  size_t accepted = 0;
  for (const Answer& answer : answers_of(run)) {
    const char* const reason = why_not(answer, request);
    accepted += reason == nullptr;
    if (reason) print_warning(fmt::format("trigger: {} {}", answer.name, reason));
    if (!reason && answer.result == ControlResult::replaced) {
      print_warning(
          fmt::format("trigger: {} had not begun the window that was asked for before: "
                      "that one is not recorded",
                      answer.name));
    }
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
  for (const RemoteProcess& remote : run.remote) id = std::max(id, remote.state.control_id + 1);
  return id;
}

// Asks for a window from `first` on, or, where none is named, from the next step that all can make.
// Where all had passed that, their steps having become faster, it asks for a later one; not where
// there are others that cannot be seen from here, which may have taken the request.
void request_window(LiveRun& run, ControlRequest& request, const CLI::Option& first) {
  constexpr int kMostTimes = 16;
  const auto late = [&](const Answer& answer) {
    return answer.is_to(request) && answer.result == ControlResult::late;
  };
  for (int times = 1; times <= kMostTimes; times *= 4) {
    request.id = new_id(run);
    request.step =
        choose_step(run, first.count() ? first.as<uint64_t>() : 0, first.count() > 0, times);
    write_request(run, request);
    wait_for_answers(run, request);
    const std::vector<Answer> answers = answers_of(run);
    if (first.count() || run.elsewhere != 0 || !std::all_of(answers.begin(), answers.end(), late)) {
      break;
    }
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
  for (const Answer& answer : answers_of(run)) {
    const char* const reason = why_not(answer, request);
    out["processes"].push_back(
        {{"name", answer.name},
         {"pid", answer.pid},
         {"host", answer.host},
         {"accepted", reason == nullptr},
         {"replaced", answer.is_to(request) && answer.result == ControlResult::replaced},
         {"reason", reason ? reason : ""}});
  }
  put(dump_json(out, 2) + "\n");
}

bool is_on_everywhere(const LiveRun& run) {
  return std::none_of(
             run.processes.begin(), run.processes.end(),
             [](const auto& process) { return process->header().recording_off.load() != 0; }) &&
         std::none_of(run.remote.begin(), run.remote.end(),
                      [](const auto& remote) { return remote.state.recording_off != 0; });
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
  auto* const off_option = app.add_flag(
      "--off", off, "record nothing from now on; with DIR also in processes that start later");
  auto* const on_option = app.add_flag("--on", on, "record again after --off");
  off_option->excludes(at_option)->excludes(steps_option)->excludes(on_option);
  on_option->excludes(at_option)->excludes(steps_option);
  std::string format = "text";
  app.add_option("--format", format, "text or json")
      ->capture_default_str()
      ->check(one_of({"text", "json"}));
  app.footer("Exits 0 when all processes took the request, 1 when some did not, 2 when none did.");
  int code = kExitDone;
  if (!parse_arguments(app, command, count, arguments, code)) return code;

  LiveRun run = find_target(target);
  const bool was_on = is_on_everywhere(run);
  ControlRequest request{new_id(run), ControlCommand::window, 0, steps};
  if (off || on) {
    request.command = off ? ControlCommand::off : ControlCommand::on;
    const Notice notice = needed_notice(run);
    if (on && !notice.foremost.empty()) request.step = notice.newest + notice.steps;
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
  return accepted == run.size() ? kExitDone : kExitGateFailed;
}

}  // namespace gpuprof
