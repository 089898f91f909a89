// SPDX-License-Identifier: Apache-2.0
// gpuprof convert: turns dumps into a trace for a viewer.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "formats/core/setting_values.h"
#include "formats/io/unfinished.h"
#include "formats/trace/activities.h"
#include "formats/trace/listing.h"
#include "formats/trace/process_key.h"
#include "formats/views/step_subset.h"
#include "formats/writers/exporter.h"
#include "formats/writers/memory_viz_changes.h"
#include "formats/writers/memory_viz_export.h"
#include "tools/analysis/left_out_kinds.h"
#include "tools/command.h"
#include "tools/console.h"
#include "tools/inputs.h"
#include "tools/older_files.h"
#include "tools/standard_output.h"
#include "tools/symbols/symbol_options.h"

namespace gpuprof {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const Exporter& exporter : exporters()) names.emplace_back(exporter.name);
  return names;
}

std::string formats_help() {
  std::string out = "Formats:";
  for (const Exporter& exporter : exporters()) {
    out +=
        fmt::format("\n  {:<14} {:<17} {}", exporter.name, exporter.suffix, exporter.description);
  }
  return out;
}

// Name of the output for one dump; a ring and a part file are of the same process as the dump.
std::string stem_of(const fs::path& dump) {
  std::string name = dump.filename().string();
  for (const std::string_view end :
       {".part", ".ring", ".gpuprof", ".gz", ".json", ".trace", ".pt"}) {
    if (name.size() > end.size() && name.ends_with(end)) name.resize(name.size() - end.size());
  }
  return name;
}

fs::path output_path(const std::vector<std::string>& inputs, const std::string& wanted,
                     const Exporter& exporter) {
  std::error_code error;
  const fs::path first = inputs[0];
  const bool one_dump = inputs.size() == 1 && !fs::is_directory(first, error);
  const std::string name = (one_dump ? stem_of(first) : "trace") + std::string(exporter.suffix);
  if (wanted == "-" || (wanted.empty() && inputs[0] == "-")) return "-";
  if (!wanted.empty()) {
    const bool into = !exporter.directory && fs::is_directory(wanted, error);
    return into ? fs::path(wanted) / name : fs::path(wanted);
  }
  return fs::is_directory(first, error) ? first / name : first.parent_path() / name;
}

// A trace for a viewer, not for a terminal, and of one file.
void check_standard_output(const Exporter& exporter) {
  if (exporter.directory) {
    throw Failure(fmt::format("convert: {} is a directory: give -o a name for it", exporter.name));
  }
  if (::isatty(STDOUT_FILENO) == 1) {
    throw Failure("convert: standard output is a terminal: give -o a file, or pipe it");
  }
}

// Takes other ranks out of the trace; clocks and what is missing have been looked at with all.
void keep_ranks(Trace& trace, const std::string& ranks) {
  check_ranks(ranks, trace);
  std::erase_if(trace.processes,
                [&](const Process& process) { return !is_of_ranks(ranks, process); });
}

// Takes other steps out of the trace.
void keep_listed_steps(Trace& trace, const std::string& steps) {
  bool listed = true;
  const auto selected = [&](uint64_t step) {
    bool found = false;
    listed = find_in_ranges(steps, step, found) && listed;
    return found;
  };
  selected(0);
  if (!listed) {
    throw Failure(
        fmt::format("--steps {}: must be all, or steps and ranges of steps, as in 0,8-15", steps));
  }
  std::set<uint64_t> there;
  for (const Process& process : trace.processes) {
    for (const Step& step : process.window_steps()) there.insert(step.step);
  }
  if (there.empty()) {
    throw Failure(fmt::format("--steps {}: no window of the input has steps", steps));
  }
  if (std::none_of(there.begin(), there.end(), selected)) {
    throw Failure(
        fmt::format("--steps {}: the input has none of them, but {}", steps, number_ranges(there)));
  }
  const size_t without = keep_steps(trace, selected);
  if (without == 0) return;
  print_note(fmt::format("{} process{} of the input {} none of these steps and {} left out",
                         without, without == 1 ? "" : "es", without == 1 ? "has" : "have",
                         without == 1 ? "is" : "are"));
}

// A list of what is allocated has no place for what a gap hides.
void refuse_gaps(const Trace& trace, const std::string& steps) {
  for (const Process& process : trace.processes) {
    if (process.stretches.size() < 2) continue;
    throw Failure(fmt::format(
        "--steps {}: memory-viz needs steps that follow each other, as in 8-15", steps));
  }
}

// Before gigabytes are written. JSON has some 450 bytes an event, whatever the job.
void note_size(const Trace& trace, const std::string& format) {
  constexpr uint64_t kBytesOfEvent = 450, kLarge = 1'000'000'000;
  if (format != "chrome" && format != "kineto") return;
  uint64_t bytes = 0;
  for (const Process& process : trace.processes) bytes += process.events.size() * kBytesOfEvent;
  if (bytes < kLarge) return;
  print_note(
      fmt::format("this writes about {:.1f} GB; --ranks and --steps write less, and a name "
                  "that ends in .gz a tenth of it",
                  static_cast<double>(bytes) / 1e9));
}

// Whether allocations were recorded, of which the window then had none. Nothing: another's trace.
std::optional<bool> recorded_allocations(const Process& process) {
  if (!activities_of(process)) return std::nullopt;
  return !is_left_out(process, Activity::alloc) || !is_left_out(process, Activity::tensor);
}

std::string how_to_record_allocations(const Trace& trace) {
  bool known = false;
  for (const Process& process : trace.processes) {
    const std::optional<bool> recorded = recorded_allocations(process);
    if (recorded == true) {
      return "the window had none: GPUPROF_MEMORY=1 follows those from before it, --all records "
             "the whole program";
    }
    known |= recorded.has_value();
  }
  return known ? "record alloc or tensor (GPUPROF_ACTIVITIES)"
               : "torch.profiler records them with profile_memory=True";
}

void note_older_files(const OlderFiles& older, const fs::path& output) {
  const std::vector<fs::path> found = older.beside_new_ones();
  if (found.empty()) return;
  print_note(fmt::format(
      "{} holds {} trace{} of before, too ({}{}), which viewers take for the same run; remove {}, "
      "or give -o another name",
      output.string(), found.size(), found.size() == 1 ? "" : "s", found[0].filename().string(),
      found.size() == 1 ? "" : ", ...", found.size() == 1 ? "it" : "them"));
}

void report(const Trace& trace, const fs::path& output, const Exporter& exporter) {
  if (output == "-") return;
  size_t events = 0, steps = 0;
  const auto processes = by_process(trace);
  for (const auto& windows : processes) {
    std::set<uint64_t> numbers;  // windows may share a step
    for (const Process* process : windows) {
      events += process->events.size();
      for (const Step& step : process->window_steps()) numbers.insert(step.step);
    }
    steps = std::max(steps, numbers.size());
  }
  std::error_code error;
  std::string size;
  if (!exporter.directory) size = format_bytes(fs::file_size(output, error)) + ", ";
  put_line("{}: {}{} events in {} step{} of {} process{}", output.string(), size, events, steps,
           steps == 1 ? "" : "s", processes.size(), processes.size() == 1 ? "" : "es");
  put_line("{}: {}", exporter.name, exporter.description);
  if (exporter.write == write_memory_viz && lacks_segments(trace)) {
    put_line(
        "the trace does not tell all segments that blocks lie in: some are made up, where "
        "blocks touch");
  }
}

}  // namespace

int run_convert(const Command& command, int count, char** arguments) {
  CLI::App app;
  std::vector<std::string> inputs;
  std::string format, wanted, ranks, steps;
  app.add_option("INPUT", inputs,
                 "dumps, what killed processes left, Kineto (torch.profiler) JSON traces, - for "
                 "standard input, or "
                 "directories of "
                 "them")
      ->required();
  JobChoice choice;
  add_job_choice(app, choice);
  app.add_option("--ranks", ranks, "ranks and ranges of ranks to write, as in 0,8-15")
      ->default_str("all");
  app.add_option("--steps", steps, "steps and ranges of steps to write, as in 0,8-15")
      ->default_str("all");
  app.add_option("--to", format, "the format to write, one of those below")
      ->required()
      ->check(one_of(format_names()));
  app.add_option(
         "-o,--output", wanted,
         "file to write (gzip where it ends in .gz), a directory for it, or - for standard output")
      ->default_str("beside the input");
  SymbolOptions symbols;
  add_debug_dirs(app, symbols);
  app.footer(formats_help());
  int code = kExitDone;
  if (!parse_arguments(app, command, count, arguments, code)) return code;

  if (steps == "all") steps.clear();
  const Exporter& exporter = *find_exporter(format);
  Input input = steps.empty() ? load_windows(inputs, choice) : load_steps(inputs, choice);
  if (!ranks.empty()) keep_ranks(input.trace, ranks);
  if (!steps.empty()) keep_listed_steps(input.trace, steps);
  if (exporter.write == write_memory_viz) refuse_gaps(input.trace, steps);
  note_size(input.trace, format);
  const fs::path output = output_path(inputs, wanted, exporter);
  const bool to_standard_output = output == "-";
  if (to_standard_output) check_standard_output(exporter);
  refuse_overwriting_inputs(command.name, input, output.string());
  symbolize(input.trace, symbols);
  if (exporter.write == write_memory_viz && !has_gpu_allocations(input.trace)) {
    print_note("no allocation on a GPU was recorded, so the snapshot is empty; " +
               how_to_record_allocations(input.trace));
  }
  if (exporter.write == write_memory_viz && lacks_addresses(input.trace)) {
    print_note(
        "the trace has sizes of blocks and no addresses (an old PyTorch's): a release is taken "
        "for that of the newest block of its size");
  }
  const analysis::LeftOutKinds left_out = analysis::left_out_of(input.trace);
  if (!left_out.kinds.empty()) {
    print_note("not recorded, by GPUPROF_BUDGET: " + analysis::describe(left_out));
  }
  std::string error;
  const OlderFiles older(exporter.directory ? output : fs::path());
  {
    WholeOutput whole;
    Progress progress("writing");
    ExportOptions options;
    // The directory of a name that nobody gave may be another user's.
    if (!to_standard_output && output != wanted) options.links = Links::replaced;
    if (output.extension() == ".gz") options.compression = Compression::gzip;
    options.progress = [&](uint64_t done, uint64_t total) { progress.update(done, total); };
    if (!exporter.write(input.trace, to_standard_output ? "/dev/stdout" : output.string(), options,
                        error) ||
        !whole.keep(error)) {
      if (to_standard_output) end_if_reader_is_gone();
      throw Failure(error);
    }
  }
  report(input.trace, output, exporter);
  note_older_files(older, output);
  return kExitDone;
}

}  // namespace gpuprof
