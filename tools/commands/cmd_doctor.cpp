// SPDX-License-Identifier: Apache-2.0
// gpuprof doctor: what would be captured here and in a program, what not, and why. Looks only; the
// program is started with --stress alone. Exit code 1 where something is missing, or differs.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tools/command.h"
#include "tools/console.h"
#include "tools/describe.h"
#include "tools/doctor/diagnosis.h"
#include "tools/doctor/stress.h"

namespace gpuprof {
namespace {

const char* state_name(Finding::State state) {
  switch (state) {
    case Finding::State::good: return "ok";
    case Finding::State::limited: return "limited";
    case Finding::State::bad: return "missing";
  }
  return "";
}

void print_text(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    put_line("{:<8} {:<10} {}", state_name(finding.state), finding.subject, finding.text);
    if (!finding.advice.empty()) put_line("{:<19} {}", "", finding.advice);
  }
}

void print_json(const std::vector<Finding>& findings) {
  Json checks = Json::array();
  for (const Finding& finding : findings) {
    checks.push_back({{"subject", finding.subject},
                      {"state", state_name(finding.state)},
                      {"text", finding.text},
                      {"advice", finding.advice}});
  }
  put(dump_json({{"schema", 1}, {"checks", std::move(checks)}}, 2) + "\n");
}

}  // namespace

int run_doctor(const Command& command, int count, char** arguments) {
  char** separator = std::find_if(arguments, arguments + count,
                                  [](const char* text) { return std::string_view(text) == "--"; });
  const int own_count = static_cast<int>(separator - arguments);
  const std::vector<std::string> program(arguments + std::min(count, own_count + 1),
                                         arguments + count);
  CLI::App app;
  std::string format = "text";
  app.add_option("--format", format, "text or json")
      ->capture_default_str()
      ->check(one_of({"text", "json"}));
  bool stressed = false;
  int runs = 5;
  CLI::Option* const stress_option = app.add_flag(
      "--stress", stressed, "run the program bare and in each mode, and compare what it does");
  app.add_option("--runs", runs, "with --stress: how often each")
      ->capture_default_str()
      ->needs(stress_option)
      ->check(number_between(1, 1000, true));
  app.footer(
      "Exits 1 if something is missing without which nothing is recorded, or if, with --stress, "
      "the program does not run as it does bare.");
  int code = kExitDone;
  if (!parse_arguments(app, command, own_count, arguments, code)) return code;
  if (stressed && program.empty()) {
    throw Failure("doctor: --stress needs a program, as in gpuprof doctor --stress -- COMMAND");
  }
  std::vector<Finding> findings;
  if (stressed) {
    findings = stress(program, runs);
  } else {
    findings = diagnose_machine();
    if (!program.empty()) diagnose_program(program[0], findings);
    diagnose_what_escapes(findings);
  }
  if (format == "json") {
    print_json(findings);
  } else {
    print_text(findings);
  }
  const bool missing = std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.state == Finding::State::bad;
  });
  return missing ? kExitGateFailed : kExitDone;
}

}  // namespace gpuprof
