// SPDX-License-Identifier: Apache-2.0
// gpuprof report: what is slow, why, and what fixing it would give.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "tools/analysis/report.h"
#include "tools/command.h"
#include "tools/console.h"
#include "tools/inputs.h"
#include "tools/report/report_html.h"
#include "tools/report/report_json.h"
#include "tools/report/report_text.h"
#include "tools/symbols/symbol_options.h"

namespace gpuprof {
namespace {

const std::map<std::string, analysis::Grouping> kGroupings = {{"shape", analysis::Grouping::shape},
                                                              {"stack", analysis::Grouping::stack},
                                                              {"layer", analysis::Grouping::layer},
                                                              {"line", analysis::Grouping::line}};
const std::map<std::string, SortBy> kOrders = {{"gpu", SortBy::gpu},
                                               {"gpu-self", SortBy::gpu_self},
                                               {"cpu", SortBy::cpu},
                                               {"cpu-self", SortBy::cpu_self},
                                               {"count", SortBy::count},
                                               {"memory", SortBy::memory},
                                               {"memory-self", SortBy::memory_self},
                                               {"name", SortBy::name}};

template <typename Value>
std::vector<std::string> words_of(const std::map<std::string, Value>& all) {
  std::vector<std::string> out;
  for (const auto& [word, value] : all) out.push_back(word);
  return out;
}

std::regex regex_of(const std::string& text) {
  try {
    return std::regex(text);
  } catch (const std::regex_error&) {
    throw Failure(fmt::format("--filter {} is not a regular expression (ECMAScript)", text));
  }
}

std::string text_of(const analysis::Report& report, const std::string& format,
                    const TextOptions& options) {
  if (format == "json") return dump_json(report_json(report), 2) + "\n";
  if (format == "html") return report_html(report_json(report));
  return report_text(report, options);
}

}  // namespace

int run_report(const Command& command, int count, char** arguments) {
  CLI::App app;
  std::vector<std::string> inputs;
  std::string format = "text", output;
  bool tables = false;
  app.add_option("INPUT", inputs,
                 "dumps, what killed processes left, Kineto (torch.profiler) JSON traces, - for "
                 "standard input, or "
                 "directories of "
                 "them")
      ->required();
  JobChoice choice;
  add_job_choice(app, choice);
  app.add_option("--format", format, "text, json or html")
      ->capture_default_str()
      ->check(one_of({"text", "json", "html"}));
  app.add_flag(
      "--tables", tables,
      "the tables and curves alone, in a third of the time: no parts of steps, no verdict, "
      "few findings");
  TextOptions text;
  std::string by, sort, filter;
  CLI::Option* const by_option =
      app.add_option("--by", by, "operators by shape, stack, layer or line of code as well")
          ->check(one_of(words_of(kGroupings)));
  CLI::Option* const sort_option =
      app.add_option("--sort", sort,
                     "text: rows of operators and layers by gpu, gpu-self, cpu, cpu-self, count, "
                     "memory, memory-self or name")
          ->check(one_of(words_of(kOrders)));
  CLI::Option* const top_option = app.add_option("--top", text.top, "text: rows of a table; 0: all")
                                      ->capture_default_str()
                                      ->check(number_between(0, 1e9, true));
  CLI::Option* const filter_option = app.add_option(
      "--filter", filter, "text: only kernels, operators, layers and owners of memory that match");
  app.add_flag("--full-names", text.full_names,
               "text: kernels by their whole names instead of the parts that tell them apart");
  SymbolOptions symbols;
  add_debug_dirs(app, symbols);
  app.add_option("-o,--output", output, "file to write")->default_str("standard output");
  int code = kExitDone;
  if (!parse_arguments(app, command, count, arguments, code)) return code;

  if (output == "-") output.clear();
  const bool terminal = output.empty() && isatty(STDOUT_FILENO) != 0;
  if (format == "html" && terminal) {
    throw Failure("--format html is a page for a browser: name a file for it with -o");
  }
  if (format != "text" && sort_option->count() + top_option->count() + filter_option->count() > 0) {
    throw Failure("--sort, --top and --filter are for --format text; JSON has all rows");
  }
  if (sort_option->count() > 0) text.sort = kOrders.at(sort);
  if (filter_option->count() > 0) text.filter = regex_of(filter);
  text.tables_alone = format == "text" && (by_option->count() > 0 || text.sort || text.filter);
  const analysis::Grouping grouping =
      by_option->count() > 0 ? kGroupings.at(by) : analysis::Grouping::name;
  Input input = load_steps(inputs, choice);
  symbolize(input.trace, symbols);
  const analysis::Depth depth =
      tables || text.tables_alone ? analysis::Depth::tables : analysis::Depth::all;
  text.colours = output.empty() && has_colours(STDOUT_FILENO);
  text.width = terminal_columns();
  put_to(output, text_of(analysis::make_report(input.trace, depth, grouping), format, text),
         format == "json" ? Escaping::needed : Escaping::ready);
  return kExitDone;
}

}  // namespace gpuprof
