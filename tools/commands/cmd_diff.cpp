// SPDX-License-Identifier: Apache-2.0
// gpuprof diff: whether a program became slower between two runs, and what did it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "tools/analysis/diff.h"
#include "tools/baseline.h"
#include "tools/command.h"
#include "tools/console.h"
#include "tools/inputs.h"
#include "tools/report/diff_html.h"
#include "tools/report/diff_output.h"

namespace gpuprof {
namespace {

struct Options {
  std::vector<std::string> runs;  // BASE NEW, or NEW alone
  std::vector<std::string> more_base, more_new;
  std::string base_attempt, new_attempt;  // of BASE and NEW alone
  std::string baseline, format = "text", output;
  double fail_over_pct = 0;
  bool gated = false, update = false, full_names = false;
};

// Each input is a run; their steps make one sample. The attempt is of the first.
analysis::RunSample sample_of(const std::vector<std::string>& runs, const std::string& attempt,
                              std::vector<std::string>* files = nullptr) {
  analysis::RunSample out;
  for (const std::string& run : runs) {
    const Input input = load_steps({run}, {"", &run == &runs[0] ? attempt : ""});
    out.add_run(input.trace);
    for (const InputFile& file : input.files) {
      if (files && (file.processes > 0 || file.completed_other)) files->push_back(file.path);
    }
  }
  return out;
}

void check(const Options& options) {
  if (options.baseline.empty() && options.runs.size() != 2) {
    throw Failure("diff: give BASE and NEW, or --baseline DIR and NEW");
  }
  if (!options.baseline.empty() && options.runs.size() != 1) {
    throw Failure("diff: with --baseline DIR give NEW alone");
  }
  if (!options.baseline.empty() && !options.base_attempt.empty()) {
    throw Failure("diff: --base-attempt is of BASE, and --baseline DIR takes its place");
  }
  if (options.update && options.baseline.empty()) {
    throw Failure("diff: --update needs --baseline DIR");
  }
  const auto is_piped = [](const std::vector<std::string>& runs) {
    return std::find(runs.begin(), runs.end(), "-") != runs.end();
  };
  if (options.update && (is_piped(options.runs) || is_piped(options.more_new))) {
    throw Failure(
        "diff: --update copies the files of NEW, and - (standard input) is none; save it in a file "
        "and name that");
  }
}

constexpr double kLeastToGate = 0.8;

std::string found_steps(double confidence) {
  return fmt::format(
      "steps are not marked, they were found from the order of the GPU's work (confidence {:.2f})",
      confidence);
}
std::string needed_to_gate() {
  return fmt::format("--fail-over needs {} or marked steps: record with --step", kLeastToGate);
}

// Steps that nobody marked may be counted wrong in one run and right in the other.
void judge_steps(const Options& options, const analysis::RunSample& base,
                 const analysis::RunSample& other) {
  if (!base.step_confidence && !other.step_confidence) return;
  const double confidence =
      std::min(base.step_confidence.value_or(1), other.step_confidence.value_or(1));
  const std::string found = "diff: " + found_steps(confidence);
  if (options.gated && confidence < kLeastToGate) throw Failure(found + "; " + needed_to_gate());
  print_note(found);
}

// Why no run could be compared with this one; empty: one could.
std::string unfit(const Options& options, const analysis::RunSample& run) {
  const std::string lacking = analysis::lacking(run);
  if (!lacking.empty()) return lacking;
  const double confidence = run.step_confidence.value_or(1);
  if (!options.gated || confidence >= kLeastToGate) return {};
  return found_steps(confidence) + ", and " + needed_to_gate();
}

// No regression, but likelier one than not: beyond what is let through, by the estimate.
bool may_be_slower(const analysis::Diff& diff, const DiffGate& gate) {
  const analysis::MeanChange& best = diff.typical_step.p < 1 ? diff.typical_step : diff.step_time;
  return gate.not_excluded_pct > 0 &&
         best.change_pct > std::max(gate.fail_over_pct, analysis::kStepFloorPct);
}

std::string named(std::string_view what, const std::vector<std::string>& runs) {
  std::string out;
  for (const std::string& run : runs) out += format_escaped("{:<4}  {}\n", what, run);
  return out;
}

void say(const Options& options, const DiffRuns& runs, const analysis::Diff& diff,
         const DiffGate& gate) {
  std::string text;
  if (options.format == "json" || options.format == "html") {
    Json json = diff_json(diff, gate);
    json["base"] = runs.base;
    json["new"] = runs.other;
    text = options.format == "json" ? dump_json(json, 2) + "\n" : diff_html(json);
  } else if (options.format == "markdown") {
    text = diff_markdown(diff, gate, runs);
  } else {
    text = named("base", runs.base) + named("new", runs.other) + "\n" +
           diff_text(diff, gate, {terminal_columns(), options.full_names});
  }
  put_to(options.output, text, options.format == "html" ? Escaping::ready : Escaping::needed);
}

// The folder in which NEW joins the baseline.
std::string join_baseline(const Options& options, const std::vector<std::string>& files) {
  const AddedRun added = add_baseline(options.baseline, files);
  for (const std::string& run : added.removed) {
    print_note(
        fmt::format("{} removed from the baseline: the newest {} runs stay", run, kRunsKept));
  }
  return added.folder;
}

// NEW joins a baseline in which nothing can be compared with it. The text is `line`.
void say_without_base(const Options& options, const DiffRuns& runs,
                      const analysis::RunSample& other, const std::string& line) {
  if (options.format == "text") return put_to(options.output, escaped(line) + "\n");
  analysis::Diff diff;
  diff.new_steps = other.step_us.size();
  diff.reason = line;
  say(options, runs, diff, gate_of(diff, options.fail_over_pct));
}

}  // namespace

int run_diff(const Command& command, int count, char** arguments) {
  CLI::App app;
  Options options;
  app.add_option(
         "RUNS", options.runs,
         "BASE NEW: dumps, Kineto (torch.profiler) JSON traces, or directories of them; NEW alone "
         "with --baseline")
      ->required();
  app.add_option("--more-base", options.more_base, "another run of the same as BASE");
  app.add_option("--more-new", options.more_new, "another run of the same as NEW");
  app.add_option("--base-attempt", options.base_attempt,
                 "of several attempts of a job in BASE, the one of this number; all: all as one")
      ->default_str("the newest that is whole");
  app.add_option("--new-attempt", options.new_attempt, "the same of NEW")
      ->default_str("the newest that is whole");
  CLI::Option* const gate_option =
      app.add_option("--fail-over", options.fail_over_pct,
                     "exit 1 if steps are significantly slower, by more than this many per cent")
          ->check(number_between(0, 1e6, false));
  app.add_option("--baseline", options.baseline,
                 "directory of runs found good: compare with the last of them");
  app.add_flag(
      "--update", options.update,
      fmt::format("add NEW to the baseline, unless it is a regression; the first run makes it, "
                  "and the newest {} stay",
                  kRunsKept));
  app.add_option("--format", options.format, "text, json, html or markdown")
      ->capture_default_str()
      ->check(one_of({"text", "json", "html", "markdown"}));
  app.add_option("-o,--output", options.output, "file to write")->default_str("standard output");
  app.add_flag("--full-names", options.full_names,
               "text: kernels by their whole names instead of the parts that tell them apart");
  int code = kExitDone;
  if (!parse_arguments(app, command, count, arguments, code)) return code;
  if (options.output == "-") options.output.clear();
  options.gated = gate_option->count() > 0;
  check(options);

  std::vector<std::string> base_runs = options.more_base, new_runs = options.more_new;
  new_runs.insert(new_runs.begin(), options.runs.back());
  std::vector<std::string> files;
  const analysis::RunSample other = sample_of(new_runs, options.new_attempt, &files);
  const std::string base =
      options.baseline.empty() ? options.runs.front() : newest_baseline(options.baseline);
  if (base.empty()) {
    if (!options.update) {
      throw Failure(fmt::format("diff: no run in the baseline {}; --update makes NEW the first",
                                options.baseline));
    }
    const std::string lacking = unfit(options, other);
    if (!lacking.empty()) {
      throw Failure(fmt::format("diff: {} cannot be the first run of the baseline {}: {}",
                                new_runs.front(), options.baseline, lacking));
    }
    judge_steps(options, other, other);
    const std::string added = join_baseline(options, files);
    say_without_base(options, {base_runs, new_runs}, other,
                     added + ": the first run of the baseline");
    return kExitDone;
  }
  base_runs.insert(base_runs.begin(), base);
  const analysis::RunSample base_sample = sample_of(base_runs, options.base_attempt);
  if (options.update && unfit(options, other).empty()) {
    const std::string lacking = unfit(options, base_sample);
    if (!lacking.empty()) {
      const std::string added = join_baseline(options, files);
      say_without_base(options, {base_runs, new_runs}, other,
                       fmt::format("{} takes the place of {}, which cannot be compared: {}", added,
                                   base, lacking));
      return kExitDone;
    }
  }
  judge_steps(options, base_sample, other);
  if (base_sample.gpu_timed != other.gpu_timed) {
    print_note(fmt::format("diff: {} has no GPU times; only step times and operators are compared",
                           other.gpu_timed ? base_runs.front() : new_runs.front()));
  }
  const analysis::Diff diff = analysis::compare(base_sample, other);
  const DiffGate gate = gate_of(diff, options.fail_over_pct);
  say(options, {base_runs, new_runs}, diff, gate);
  if (!diff.reason.empty()) return kExitBadUsage;
  if (options.gated && gate.regression) return kExitGateFailed;
  if (gate.unknown) {
    if (options.update) print_note("NEW was not added to the baseline");
    return options.gated ? kExitBadUsage : kExitDone;
  }
  if (options.update && gate.regression) {
    print_note(
        "NEW is slower, so it was not added to the baseline; --fail-over PERCENT allows some");
  } else if (options.update && may_be_slower(diff, gate)) {
    print_note("NEW may be slower, so it was not added to the baseline; compare more steps");
  } else if (options.update) {
    print_note(join_baseline(options, files) + " added to the baseline");
  }
  return kExitDone;
}

}  // namespace gpuprof
