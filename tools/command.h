// SPDX-License-Identifier: Apache-2.0
// One command of gpuprof is one row of kCommands (main.cpp) and one cmd_<name>.cpp that defines its
// run function.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Validator;
}  // namespace CLI

namespace gpuprof {

inline constexpr int kExitDone = 0;
inline constexpr int kExitGateFailed = 1;  // diff: a regression; doctor: something is missing
inline constexpr int kExitBadUsage = 2;    // or no input was readable

struct Command {
  const char* name;
  const char* synopsis;  // what follows "gpuprof ", for --help
  const char* usage;     // one line that says what it does
  // `arguments[0]` is the command's name. Returns the exit code. May throw Failure (console.h).
  int (*run)(const Command& command, int count, char** arguments);
};

// Parses the arguments into what `app` was set up with. Returns false when the command is to end at
// once with `code`: after --help (printed here), or after a mistake (one line on standard error).
bool parse_arguments(CLI::App& app, const Command& command, int count, char** arguments, int& code);

// While `look` is set, parse_arguments() hands it each command's options in place of parsing, and
// the command ends. Not thread-safe.
void look_at_options(std::function<void(const CLI::App&)> look);

// Of an option's value: a number from `low` to `high`, both included; `whole`: without a fraction.
CLI::Validator number_between(double low, double high, bool whole);

// Of an option's value: one of `words`, whatever its case; it becomes the word as it stands here.
CLI::Validator one_of(std::vector<std::string> words);

// The rows of main.cpp, and its version.
const std::vector<const Command*>& all_commands();
const char* version();

int run_run(const Command& command, int count, char** arguments);
int run_report(const Command& command, int count, char** arguments);
int run_diff(const Command& command, int count, char** arguments);
int run_convert(const Command& command, int count, char** arguments);
int run_export(const Command& command, int count, char** arguments);
int run_sql(const Command& command, int count, char** arguments);
int run_info(const Command& command, int count, char** arguments);
int run_parse(const Command& command, int count, char** arguments);
int run_trigger(const Command& command, int count, char** arguments);
int run_doctor(const Command& command, int count, char** arguments);
int run_config(const Command& command, int count, char** arguments);
int run_lib(const Command& command, int count, char** arguments);
int run_open(const Command& command, int count, char** arguments);
int run_completion(const Command& command, int count, char** arguments);

}  // namespace gpuprof
