// SPDX-License-Identifier: Apache-2.0
// The gpuprof command: finds the row of the command named first and runs it.
#include <csignal>
#include <cstring>
#include <string>
#include <string_view>

#include "formats/core/text.h"
#include "formats/io/unfinished.h"
#include "tools/command.h"
#include "tools/console.h"
#include "tools/guarded.h"

namespace gpuprof {
namespace {

constexpr Command kCommands[] = {
    {"run",
     "run [-o DIR] [--all | --schedule S] [--step SRC] [--preset P] [--activities A] [--ranks R] "
     "[--set NAME=VALUE]... [--report[=FORMAT]] [--open] [--] COMMAND...",
     "run a program and record its windows; exits as the program does", run_run},
    {"report",
     "report INPUT... [--tables] [--by shape|stack|layer|line] [--sort COLUMN] [--top N] "
     "[--filter REGEX] [--full-names] [--job ID] [--attempt N] [--debug-dir DIR] "
     "[--format text|json|html] [-o FILE]",
     "what is slow, why, and what fixing it would give", run_report},
    {"diff",
     "diff BASE NEW | diff --baseline DIR [--update] NEW, each with [--fail-over PERCENT] "
     "[--more-base RUN]... [--more-new RUN]... [--base-attempt N] [--new-attempt N] [--full-names] "
     "[--format text|json|html|markdown] [-o FILE]",
     "what changed between two runs, and whether it is more than noise", run_diff},
    {"convert",
     "convert INPUT... --to FORMAT [--ranks R] [--steps S] [--job ID] [--attempt N] "
     "[--debug-dir DIR] [-o OUT]",
     "turn dumps into a trace for a viewer", run_convert},
    {"export",
     "export INPUT... --to parquet|otlp -o OUT [--signal traces|metrics] [--ranks R] [--job ID] "
     "[--attempt N] [--debug-dir DIR]",
     "add runs to tables that DuckDB and Spark read, or hand them to OpenTelemetry", run_export},
    {"sql", "sql DIR [QUERY] [--format text|csv|json] | sql DIR [QUERY] --print duckdb|spark",
     "ask such tables by DuckDB's command line, or print what another engine needs", run_sql},
    {"info", "info INPUT... [--job ID] [--attempt N] [--format text|json]",
     "what dumps hold: header, steps, counts, losses", run_info},
    {"parse", "parse INPUT [--debug-dir DIR] [--format text|json]",
     "every record of a dump, one line each", run_parse},
    {"trigger",
     "trigger PID|DIR [--at-step N] [--steps N] [--format text|json] | trigger PID|DIR --off|--on "
     "[--format text|json]",
     "record a window of a running program, at the same step on all ranks", run_trigger},
    {"doctor",
     "doctor [--format text|json] [-- COMMAND...] | doctor --stress [--runs N] "
     "[--format text|json] -- COMMAND...",
     "what would be captured here, what not, and why", run_doctor},
    {"config", "config [--format text|json]",
     "the settings in force, where each comes from, what is allowed", run_config},
    {"lib", "lib [--format text|json]", "the path of libgpuprof.so, for LD_PRELOAD", run_lib},
    {"open", "open INPUT... [-o FILE] [--port N] | open INPUT... --perfetto [--port N]",
     "the report's page in the browser, or the trace in Perfetto's", run_open},
    {"completion", "completion bash|zsh|fish|man", "a shell's completions, or the manual page",
     run_completion},
};

void print_help() {
  put("gpuprof records what a GPU program does, and shows it.\n\nUsage: gpuprof COMMAND ...\n\n");
  for (const Command& command : kCommands) {
    put_line("  {:<10} {}", command.name, command.usage);
  }
  put("\ngpuprof COMMAND --help says more. gpuprof --version prints the version.\n"
      "To record without gpuprof run: LD_PRELOAD=$(gpuprof lib) COMMAND...\n");
}

const Command* find_command(std::string_view name) {
  for (const Command& command : kCommands) {
    if (name == command.name) return &command;
  }
  return nullptr;
}

// Empty: no name is near.
std::string_view nearest_command(std::string_view name) {
  std::string_view nearest;
  size_t best = 2 + name.size() / 4;
  for (const Command& command : kCommands) {
    const size_t distance = edit_distance(name, command.name);
    if (distance >= best) continue;
    best = distance;
    nearest = command.name;
  }
  return nearest;
}

int refuse(std::string_view name) {
  const std::string_view nearest = nearest_command(name);
  print_error(fmt::format("\"{}\" is no command{}{}{} gpuprof --help lists them", name,
                          nearest.empty() ? ";" : "; did you mean ", nearest,
                          nearest.empty() ? "" : "?"));
  return kExitBadUsage;
}

// `gpuprof help [COMMAND]`.
int help(int count, char** arguments) {
  if (count == 2) {
    print_help();
    return kExitDone;
  }
  if (count > 3) {
    print_error(fmt::format("{} takes one command, and there are {}", arguments[1], count - 2));
    return kExitBadUsage;
  }
  const Command* const command = find_command(arguments[2]);
  if (command == nullptr) return refuse(arguments[2]);
  std::string name(command->name), option = "--help";
  char* words[] = {name.data(), option.data(), nullptr};
  return command->run(*command, 2, words);
}

int dispatch(int count, char** arguments) {
  const std::string_view name = count > 1 ? arguments[1] : "";
  if (name == "--help" || name == "-h" || name == "help") return help(count, arguments);
  if (name == "--version" || name == "-V") {
    put("gpuprof " GPUPROF_VERSION "\n");
    return kExitDone;
  }
  if (count < 2) {
    print_error("no command given; gpuprof --help lists them");
    return kExitBadUsage;
  }
  const Command* command = find_command(name);
  if (command == nullptr) return refuse(name);
  // Writes to a closed pipe then fail, and end the command quietly. A program that `run` starts
  // must not inherit this.
  if (command->run != run_run) std::signal(SIGPIPE, SIG_IGN);
  // These two start programs, and pass signals on to them: `run` until its program has ended.
  if (command->run != run_run && command->run != run_doctor) remove_unfinished_on_signals();
  return command->run(*command, count - 1, arguments + 1);
}

}  // namespace

const std::vector<const Command*>& all_commands() {
  static const std::vector<const Command*> rows = [] {
    std::vector<const Command*> out;
    for (const Command& command : kCommands) out.push_back(&command);
    return out;
  }();
  return rows;
}

const char* version() { return GPUPROF_VERSION; }

}  // namespace gpuprof

int main(int count, char** arguments) {
  return gpuprof::run_guarded([&] { return gpuprof::dispatch(count, arguments); });
}
