// SPDX-License-Identifier: Apache-2.0
// gpuprof sql: DuckDB's command line with views of exported tables.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "formats/io/file_bytes.h"
#include "tools/child.h"
#include "tools/command.h"
#include "tools/console.h"
#include "tools/program_file.h"
#include "tools/sql/queries.h"

namespace gpuprof {
namespace {

std::string queries_help() {
  std::string out = "Queries:";
  for (const Query& query : queries()) {
    out += fmt::format("\n  {:<22} {}", query.name, query.title());
  }
  return out;
}

// Of a name, a file, or SQL itself.
std::string text_of(const std::string& query) {
  for (const Query& each : queries()) {
    if (query == each.name) return std::string(each.text);
  }
  if (query.find_first_of(" \t\n") != std::string::npos) return query;
  std::string text, reason;
  if (std::filesystem::exists(query) && read_file(query, text, reason)) return text;
  std::string names;
  for (const Query& each : queries()) {
    names += (names.empty() ? "" : ", ") + std::string(each.name);
  }
  throw Failure(fmt::format("sql: {} is no query, no readable file and no SQL; the queries are {}",
                            query, names));
}

// Answers from there are empty, as they are of a question that nothing fits.
void warn_without_tables(const std::string& folder) {
  if (holds_tables(folder)) return;
  print_warning(
      fmt::format("{}: no table of gpuprof export is there, so nothing is found", folder));
}

[[noreturn]] void start_duckdb(const std::vector<std::string>& words, const std::string& folder) {
  const std::string program = find_program("duckdb");
  if (program.empty()) {
    throw Failure(
        "sql starts DuckDB's command line, duckdb, which is not in PATH; install it, or give "
        "--print the engine that you have");
  }
  warn_without_tables(folder);
  flush_output();
  ::execv(program.c_str(), pointers(words).data());
  throw Failure(fmt::format("{}: cannot be started: {}", program, std::strerror(errno)));
}

}  // namespace

int run_sql(const Command& command, int count, char** arguments) {
  CLI::App app;
  std::string folder, query, engine, format = "text";
  app.add_option("DIR", folder, "directory that gpuprof export wrote")
      ->required()
      ->check(CLI::ExistingDirectory);
  app.add_option("QUERY", query, "a name of those below, a file, or SQL; none: a prompt");
  app.add_option("--format", format, "text, csv or json")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "csv", "json"}));
  CLI::Option* const print = app.add_option(
      "--print", engine, "print the statements for this engine, duckdb or spark; start none");
  print->check(CLI::IsMember({"duckdb", "spark"}));
  app.footer(queries_help());
  int code = kExitDone;
  if (!parse_arguments(app, command, count, arguments, code)) return code;

  const std::string text = query.empty() ? "" : text_of(query);
  const std::string place = std::filesystem::absolute(folder).lexically_normal().string();
  if (print->count() > 0) {
    warn_without_tables(folder);
    put(view_statements(place, engine == "spark" ? SqlEngine::spark : SqlEngine::duckdb));
    if (!text.empty()) put(text + (text.ends_with('\n') ? "" : "\n") + ";\n");
    return kExitDone;
  }
  std::vector<std::string> words = {"duckdb"};
  if (format != "text") words.push_back("-" + format);
  words.insert(words.end(), {"-cmd", view_statements(place, SqlEngine::duckdb)});
  if (!text.empty()) words.insert(words.end(), {"-c", text});
  start_duckdb(words, folder);
}

}  // namespace gpuprof
