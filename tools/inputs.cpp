// SPDX-License-Identifier: Apache-2.0
#include "tools/inputs.h"

#include <sys/mman.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include "formats/core/setting_values.h"
#include "formats/trace/listing.h"
#include "tools/analysis/left_out_windows.h"
#include "tools/analysis/ranks/clocks.h"
#include "tools/console.h"

namespace gpuprof {
namespace {

// The first problem of a file tells most; damage may come in hundreds.
void warn_of_problems(const std::vector<Problem>& problems) {
  std::map<std::string, size_t> counts;
  for (const Problem& problem : problems) {
    if (!problem.sums_up) ++counts[problem.file];
  }
  for (const Problem& problem : problems) {
    if (problem.sums_up) {
      print_warning(problem.text());
      continue;
    }
    const auto count = counts.find(problem.file);
    if (count == counts.end()) continue;
    print_warning(count->second == 1
                      ? problem.text()
                      : fmt::format("{}; and {} more problem{} in this file", problem.text(),
                                    count->second - 1, count->second == 2 ? "" : "s"));
    counts.erase(count);
  }
}

constexpr const char* kStandardInput = "-";

// Readers seek: what comes by a pipe is kept in memory, under a path that this process can open.
class SpooledInput {
 public:
  SpooledInput() : file_(::memfd_create("standard input", MFD_CLOEXEC)) {
    if (file_ < 0) fail("cannot be kept");
    path_ = fmt::format("/proc/self/fd/{}", file_);
    std::string part(1 << 20, '\0');
    for (;;) {
      const ssize_t got = ::read(STDIN_FILENO, part.data(), part.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail("cannot be read");
      if (got == 0) return;
      write(part.data(), static_cast<size_t>(got));
    }
  }
  ~SpooledInput() { ::close(file_); }
  SpooledInput(const SpooledInput&) = delete;
  SpooledInput& operator=(const SpooledInput&) = delete;

  const std::string& path() const { return path_; }

  // For people it has another name.
  void rename(std::string& text) const {
    for (size_t at; (at = text.find(path_)) != std::string::npos;) {
      text.replace(at, path_.size(), "standard input");
    }
  }

 private:
  [[noreturn]] static void fail(const char* what) {
    throw Failure(fmt::format("standard input {}: {}", what, std::strerror(errno)));
  }
  void write(const char* data, size_t size) {
    while (size > 0) {
      const ssize_t put = ::write(file_, data, size);
      if (put < 0 && errno != EINTR) fail("cannot be kept");
      if (put < 0) continue;
      data += put;
      size -= static_cast<size_t>(put);
    }
  }

  int file_;
  std::string path_;
};

Input load_with_standard_input(std::vector<std::string> paths, const InputOptions& options) {
  const SpooledInput spooled;
  std::replace(paths.begin(), paths.end(), std::string(kStandardInput), spooled.path());
  Input input = load_input(paths, options);
  for (Problem& problem : input.trace.problems) spooled.rename(problem.file);
  for (std::string& note : input.trace.notes) spooled.rename(note);
  for (Process& process : input.trace.processes) spooled.rename(process.path);
  for (InputFile& file : input.files) spooled.rename(file.path);
  return input;
}

}  // namespace

Input load_inputs(const std::vector<std::string>& paths, const JobChoice& choice) {
  Input input;
  {
    Progress progress("reading");
    InputOptions options;
    options.choice = choice;
    options.progress = [&](const std::string&, size_t number, size_t count) {
      progress.update(number, count);
    };
    const bool piped = std::find(paths.begin(), paths.end(), kStandardInput) != paths.end();
    input = piped ? load_with_standard_input(paths, options) : load_input(paths, options);
  }
  for (const std::string& note : input.trace.notes) print_note(note);
  const std::vector<Problem>& problems = input.trace.problems;
  if (!input.readable()) {
    throw Failure(problems.empty() ? fmt::format("{}: nothing readable", paths[0])
                                   : problems[0].text());
  }
  warn_of_problems(problems);
  const std::string clocks = analysis::describe_clocks(analysis::align_clocks(input.trace));
  if (!clocks.empty()) print_note(clocks);
  return input;
}

Input load_windows(const std::vector<std::string>& paths, const JobChoice& choice) {
  Input input = load_inputs(paths, choice);
  if (const size_t count = analysis::leave_out_early_windows(input.trace)) {
    print_note(
        fmt::format("left out {}: the window of the schedule was recorded too",
                    count == 1 ? "an early window" : fmt::format("{} early windows", count)));
  }
  return input;
}

Input load_steps(const std::vector<std::string>& paths, const JobChoice& choice) {
  Input input = load_windows(paths, choice);
  const auto say = [](size_t count, const char* of,
                      const char* why = "the program's own steps were recorded too") {
    if (count == 0) return;
    print_note(fmt::format("left out {} of {}: {}",
                           count == 1 ? "a window" : fmt::format("{} windows", count), of, why));
  };
  say(analysis::leave_out_clock_windows(input.trace), "wall time");
  say(analysis::leave_out_idle_windows(input.trace), "wall time without work for a GPU",
      "other processes have steps");
  say(analysis::leave_out_inferred_windows(input.trace), "steps that auto inferred");
  return input;
}

bool is_of_ranks(const std::string& ranks, const Process& process) {
  Reason reason;
  bool out = true;
  if (!read_ranks(ranks, std::max(process.header.rank(), 0), out, reason)) {
    throw Failure(fmt::format("--ranks {}: {}", ranks, reason.text));
  }
  return out;
}

void check_ranks(const std::string& ranks, const Trace& trace) {
  std::set<int32_t> there;
  for (const Process& process : trace.processes) {
    if (is_of_ranks(ranks, process)) return;
    there.insert(std::max(process.header.rank(), 0));
  }
  throw Failure(fmt::format("--ranks {}: none of these ranks is in the input, which has {}", ranks,
                            rank_ranges(there)));
}

void refuse_overwriting_inputs(std::string_view command, const Input& input,
                               const std::string& output) {
  namespace fs = std::filesystem;
  for (const InputFile& file : input.files) {
    std::error_code error;
    const fs::path path = file.path;
    const bool beside = path.filename().string().find(".gpuprof") == std::string::npos &&
                        fs::equivalent(fs::absolute(path).parent_path(), output, error);
    if (beside || fs::equivalent(path, output, error)) {
      throw Failure(fmt::format("{}: {} is an input; give -o another name", command, file.path));
    }
  }
}

void add_job_choice(CLI::App& app, JobChoice& choice) {
  app.add_option("--job", choice.job, "of several jobs in a directory, the one of this id or run")
      ->default_str("that of the newest whole attempt");
  app.add_option(
         "--attempt", choice.attempt,
         "of several attempts of a job, the one of this number; all: all of the job, as one")
      ->default_str("the newest that is whole");
}

}  // namespace gpuprof
