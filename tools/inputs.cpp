// SPDX-License-Identifier: Apache-2.0
#include "tools/inputs.h"

#include <CLI/CLI.hpp>
#include <map>

#include "tools/analysis/clock_windows.h"
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
    print_warning(count->second == 1 ? problem.text()
                                     : fmt::format("{}; and {} more problems in this file",
                                                   problem.text(), count->second - 1));
    counts.erase(count);
  }
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
    input = load_input(paths, options);
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

Input load_steps(const std::vector<std::string>& paths, const JobChoice& choice) {
  Input input = load_inputs(paths, choice);
  analysis::leave_out_early_windows(input.trace);
  const size_t count = analysis::leave_out_clock_windows(input.trace);
  if (count > 0) {
    print_note(fmt::format("left out {} of wall time: the program's own steps were recorded too",
                           count == 1 ? "a window" : fmt::format("{} windows", count)));
  }
  return input;
}

void add_job_choice(CLI::App& app, JobChoice& choice) {
  app.add_option("--job", choice.job, "of several jobs in a directory, the one of this id or run")
      ->default_str("that of the newest whole attempt");
  app.add_option("--attempt", choice.attempt,
                 "of several attempts of a job, the one of this number; all: as one")
      ->default_str("the newest that is whole");
}

}  // namespace gpuprof
