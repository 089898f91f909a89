// SPDX-License-Identifier: Apache-2.0
// gpuprof export: tables of many runs for engines of queries. Another program writes them, since
// this one links nothing that big.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "tools/command.h"
#include "tools/console.h"
#include "tools/export_request.h"
#include "tools/library_path.h"
#include "tools/program_file.h"

namespace gpuprof {
namespace {

constexpr const char* kWriter = "gpuprof-parquet";

std::string find_writer() {
  std::string found = find_tool_beside(kWriter);
  if (found.empty()) found = find_program(kWriter);
  if (!found.empty()) return found;
  throw Failure(
      fmt::format("export --to parquet starts {}, which is neither beside gpuprof nor in PATH; "
                  "build it against Apache Arrow (docs/PARQUET.md)",
                  kWriter));
}

}  // namespace

int run_export(const Command& command, int count, char** arguments) {
  CLI::App app;
  ExportRequest request;
  add_export_options(app, request);
  int code = kExitDone;
  if (!parse_arguments(app, command, count, arguments, code)) return code;

  const std::string writer = find_writer();
  std::vector<char*> words(arguments, arguments + count);
  words.push_back(nullptr);
  flush_output();
  ::execv(writer.c_str(), words.data());
  throw Failure(fmt::format("{}: cannot be started: {}", writer, std::strerror(errno)));
}

}  // namespace gpuprof
