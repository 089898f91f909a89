// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/stress.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "formats/io/unfinished.h"
#include "tools/child.h"
#include "tools/console.h"
#include "tools/library_path.h"

namespace gpuprof {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

struct StressMode {
  const char* name;
  std::vector<std::string> settings;
  const char* when_slower;  // what helps
};

// What every run pays once counts most in short programs.
constexpr double kShortSeconds = 30;

const StressMode kModes[] = {
    {"off",
     {"GPUPROF_MODE=off"},
     "nothing is recorded in this mode; preload the library only where somebody profiles"},
    {"armed",
     {"GPUPROF_MODE=armed"},
     "nothing is recorded in this mode; preload the library only where somebody profiles"},
    {"on", {"GPUPROF_MODE=on"}, "record less (GPUPROF_PRESET=light)"},
    {"all",
     {"GPUPROF_MODE=on", "GPUPROF_SCHEDULE=all"},
     "record less (GPUPROF_PRESET=light), or a few steps (mode on)"},
};

// What one run did, as far as anybody else can see.
struct Outcome {
  int status = 0;  // of waitpid
  std::string out, err;
  std::set<std::string> files;  // in the working directory, that were not there before
  size_t threads = 0;           // of the program itself, at most at one time
  size_t left = 0;              // processes that outlived it
  double seconds = 0;
};

// A signal that asks this command to end. What was started ends first, and its folder goes.
std::atomic<int> g_asked_to_end{0};

struct Interrupted {
  int signal;
};

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string without_our_lines(const std::string& text) {
  std::string out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("gpuprof: ")) out += line + "\n";
  }
  return out;
}

std::set<std::string> files_here() {
  std::set<std::string> out;
  std::error_code error;
  for (fs::directory_iterator at(".", error), end; !error && at != end; at.increment(error)) {
    out.insert(at->path().filename().string());
  }
  return out;
}

// Its own; not those of its children.
size_t threads_of(pid_t pid) {
  std::error_code error;
  size_t count = 0;
  for (fs::directory_iterator at(fmt::format("/proc/{}/task", pid), error), end;
       !error && at != end; at.increment(error)) {
    ++count;
  }
  return count;
}

// What else is preloaded here. Where the library is for every program, it is not for a bare one.
std::string other_preloads() {
  const char* const value = ::getenv("LD_PRELOAD");
  std::string_view rest = value ? value : "";
  std::string out;
  while (!rest.empty()) {
    const size_t length = rest.find_first_of(": \t\n");  // ld.so(8)
    const std::string name(rest.substr(0, length));
    rest.remove_prefix(length == std::string_view::npos ? rest.size() : length + 1);
    if (!name.empty() && !is_our_library(name)) out += (out.empty() ? "" : ":") + name;
  }
  return out;
}

// Whether this NAME=VALUE has CUDA's driver, or NVTX, load the library.
bool injects_our_library(std::string_view entry) {
  for (const std::string_view name : {"CUDA_INJECTION64_PATH=", "NVTX_INJECTION64_PATH="}) {
    if (entry.starts_with(name)) return is_our_library(std::string(entry.substr(name.size())));
  }
  return false;
}

class Runner {
 public:
  Runner(const std::vector<std::string>& program, fs::path folder)
      : program_(program), library_(find_preloadable_library()), folder_(std::move(folder)) {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // what outlives the program becomes our child
  }

  // `mode` null: bare.
  Outcome run(const StressMode* mode) {
    if (g_asked_to_end) throw Interrupted{g_asked_to_end};
    Outcome outcome;
    const std::set<std::string> before = files_here();
    const Clock::time_point begun = Clock::now();
    const pid_t pid = start(mode);
    while (::waitpid(pid, &outcome.status, WNOHANG) == 0) {
      outcome.threads = std::max(outcome.threads, threads_of(pid));
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      if (g_asked_to_end) end_early(pid);
    }
    outcome.seconds = std::chrono::duration<double>(Clock::now() - begun).count();
    outcome.left = end_leftovers();
    outcome.out = read_text(folder_ / "out");
    outcome.err = without_our_lines(read_text(folder_ / "err"));
    for (const std::string& file : files_here()) {
      if (!before.contains(file)) outcome.files.insert(file);
    }
    return outcome;
  }

 private:
  std::vector<std::string> environment(const StressMode* mode) const {
    std::vector<std::string> out;
    for (char** entry = environ; *entry; ++entry) {
      const std::string_view text = *entry;
      if (!text.starts_with("GPUPROF_") && !text.starts_with("LD_PRELOAD=") &&
          !injects_our_library(text)) {
        out.emplace_back(text);
      }
    }
    const std::string before = other_preloads();
    if (mode) {
      out.push_back("LD_PRELOAD=" + library_ + (before.empty() ? "" : ":" + before));
      out.push_back(fmt::format("GPUPROF_OUTPUT={}", (folder_ / "dumps").string()));
      out.insert(out.end(), mode->settings.begin(), mode->settings.end());
    } else if (!before.empty()) {
      out.push_back("LD_PRELOAD=" + before);
    }
    return out;
  }

  pid_t start(const StressMode* mode) const {
    const std::vector<std::string> variables = environment(mode);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    const int flags = O_WRONLY | O_CREAT | O_TRUNC;
    const std::string out = (folder_ / "out").string(), err = (folder_ / "err").string();
    ::posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), flags, 0600);
    ::posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), flags, 0600);
    pid_t pid = 0;
    const int failed = ::posix_spawnp(&pid, program_[0].c_str(), &actions, nullptr,
                                      pointers(program_).data(), pointers(variables).data());
    ::posix_spawn_file_actions_destroy(&actions);
    if (failed) throw Failure(fmt::format("doctor: {}: {}", program_[0], std::strerror(failed)));
    return pid;
  }

  // The program may end by the signal itself; what is left after 2 s is killed.
  [[noreturn]] static void end_early(pid_t pid) {
    const Interrupted interrupted{g_asked_to_end};
    ::kill(pid, interrupted.signal);
    for (int i = 0; i < 200 && ::waitpid(pid, nullptr, WNOHANG) == 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    end_leftovers();
    throw interrupted;
  }

  // A moment is theirs: what ends by itself right after the program is not counted.
  static size_t end_leftovers() {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    const fs::path children = fmt::format("/proc/self/task/{}/children", ::getpid());
    // The children of one that was killed are ours then.
    for (size_t count = 0;;) {
      std::istringstream list(read_text(children));
      const size_t before = count;
      for (pid_t pid = 0; list >> pid; ++count) {
        ::kill(pid, SIGKILL);
        ::waitpid(pid, nullptr, 0);
      }
      if (count == before) return count;
    }
  }

  const std::vector<std::string>& program_;
  const std::string library_;
  const fs::path folder_;
};

std::string describe_status(int status) {
  return WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status))
                             : fmt::format("exit code {}", WEXITSTATUS(status));
}

double middle(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

std::vector<double> seconds_of(const std::vector<Outcome>& runs) {
  std::vector<double> out;
  for (const Outcome& run : runs) out.push_back(run.seconds);
  return out;
}

size_t most_threads(const std::vector<Outcome>& runs) {
  size_t most = 0;
  for (const Outcome& run : runs) most = std::max(most, run.threads);
  return most;
}

// What all bare runs agree on.
struct Agreed {
  bool status, out, err, files;

  explicit Agreed(const std::vector<Outcome>& runs) {
    const Outcome& first = runs[0];
    const auto same = [&](auto member) {
      return std::all_of(runs.begin(), runs.end(),
                         [&](const Outcome& run) { return run.*member == first.*member; });
    };
    status = same(&Outcome::status);
    out = same(&Outcome::out);
    err = same(&Outcome::err);
    files = same(&Outcome::files);
  }
  std::string not_compared() const {
    std::string names;
    const auto add = [&](bool agreed, const char* name) {
      if (!agreed) names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
    };
    add(status, "exit code"), add(out, "standard output"), add(err, "standard error");
    add(files, "files");
    return names;
  }
};

// How a run differs from a bare one; empty: not at all.
std::string difference(const Outcome& bare, const Outcome& run, const Agreed& agreed) {
  std::vector<std::string> found;
  if (agreed.status && run.status != bare.status) {
    found.push_back(
        fmt::format("{}, {} bare", describe_status(run.status), describe_status(bare.status)));
  }
  if (agreed.out && run.out != bare.out) found.emplace_back("another standard output");
  if (agreed.err && run.err != bare.err) found.emplace_back("another standard error");
  if (agreed.files && run.files != bare.files) {
    std::vector<std::string> more;
    std::set_symmetric_difference(run.files.begin(), run.files.end(), bare.files.begin(),
                                  bare.files.end(), std::back_inserter(more));
    found.push_back(fmt::format("other files in this directory: {}", fmt::join(more, ", ")));
  }
  if (run.left > bare.left) found.push_back(fmt::format("{} processes left over", run.left));
  return fmt::format("{}", fmt::join(found, "; "));
}

Finding judge(const StressMode& mode, const std::vector<Outcome>& bare,
              const std::vector<Outcome>& runs) {
  const Agreed agreed(bare);
  Finding finding{Finding::State::good, std::string("mode ") + mode.name, "", ""};
  size_t differing = 0;
  std::string how;
  for (const Outcome& run : runs) {
    const std::string found = difference(bare[0], run, agreed);
    if (found.empty()) continue;
    if (differing++ == 0) how = found;
  }
  const std::vector<double> base = seconds_of(bare), times = seconds_of(runs);
  const double ratio = middle(times) / middle(base);
  const bool slower = ratio > 1.1 && *std::min_element(times.begin(), times.end()) >
                                         *std::max_element(base.begin(), base.end());
  finding.text = fmt::format(
      "{} of {} runs as bare{}{}; time {:.2f} of bare (median {} ms), threads {} (bare {})",
      runs.size() - differing, runs.size(), differing ? ": " : "", how, ratio,
      static_cast<int64_t>(middle(times) * 1e3), most_threads(runs), most_threads(bare));
  if (differing) {
    finding.state = Finding::State::bad;
    finding.advice = "do not preload the library into this program in this mode";
  } else if (slower) {
    finding.state = Finding::State::limited;
    finding.advice = fmt::format("every run was slower than each bare one; {}", mode.when_slower);
    if (middle(base) < kShortSeconds) {
      finding.advice += fmt::format(
          "; the bare program takes {:.1f} s, in which the library's start and end count, paid "
          "once: compare one that runs for minutes",
          middle(base));
    }
  }
  return finding;
}

// A folder that goes when this does.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (fs::temp_directory_path() / "gpuprof-stress-XXXXXX").string();
    if (!::mkdtemp(name.data())) {
      throw Failure(fmt::format("doctor: {}: {}", name, std::strerror(errno)));
    }
    path_ = name;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// How far it is: on a terminal at every moment, elsewhere a line for each round, or each 10 s.
class RunProgress {
 public:
  explicit RunProgress(int rounds) : total_(static_cast<uint64_t>(rounds) * kOfARound) {}

  void run_ended() {
    progress_.update(++done_, total_);
    const Clock::time_point now = Clock::now();
    if (terminal_ || (done_ % kOfARound != 0 && now - said_ < std::chrono::seconds(10))) return;
    said_ = now;
    print_note(fmt::format("doctor: {} of {} runs are done, {:.0f} s so far", done_, total_,
                           std::chrono::duration<double>(now - begun_).count()));
  }

 private:
  static constexpr uint64_t kOfARound = std::size(kModes) + 1;
  const uint64_t total_;
  const bool terminal_ = ::isatty(STDERR_FILENO) == 1;
  const Clock::time_point begun_ = Clock::now();
  Clock::time_point said_ = begun_;
  Progress progress_{"running"};
  uint64_t done_ = 0;
};

std::vector<Finding> run_all(const std::vector<std::string>& program, int runs) {
  const ScratchFolder scratch;
  Runner runner(program, scratch.path());
  std::vector<Outcome> bare, profiled[std::size(kModes)];
  RunProgress progress(runs);
  for (int round = 0; round < runs; ++round) {
    bare.push_back(runner.run(nullptr));
    progress.run_ended();
    for (size_t mode = 0; mode < std::size(kModes); ++mode) {
      profiled[mode].push_back(runner.run(&kModes[mode]));
      progress.run_ended();
    }
  }
  const Agreed agreed(bare);
  std::vector<Finding> out;
  out.push_back({Finding::State::good, "bare",
                 fmt::format("{} runs: {}, median {} ms", runs, describe_status(bare[0].status),
                             static_cast<int64_t>(middle(seconds_of(bare)) * 1e3)),
                 ""});
  if (const std::string names = agreed.not_compared(); !names.empty()) {
    out.back().state = Finding::State::limited;
    out.back().advice = "not compared, since bare runs differ in it: " + names;
  }
  for (size_t mode = 0; mode < std::size(kModes); ++mode) {
    out.push_back(judge(kModes[mode], bare, profiled[mode]));
  }
  return out;
}

}  // namespace

std::vector<Finding> stress(const std::vector<std::string>& program, int runs) {
  on_ending_signals([](int signal) { g_asked_to_end = signal; });
  try {
    return run_all(program, runs);
  } catch (const Interrupted& interrupted) {
    std::exit(128 + interrupted.signal);
  }
}

}  // namespace gpuprof
