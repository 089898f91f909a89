// SPDX-License-Identifier: Apache-2.0
#include "tools/show/show_run.h"

#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "formats/core/terminal_text.h"
#include "formats/io/file_bytes.h"
#include "formats/io/unfinished.h"
#include "formats/writers/exporter.h"
#include "tools/analysis/report.h"
#include "tools/console.h"
#include "tools/inputs.h"
#include "tools/report/report_html.h"
#include "tools/report/report_json.h"
#include "tools/report/report_text.h"
#include "tools/show/browser.h"
#include "tools/show/page_server.h"
#include "tools/show/perfetto_page.h"
#include "tools/symbols/symbol_options.h"

namespace gpuprof {
namespace {

namespace fs = std::filesystem;

constexpr size_t kVerdictLines = 10;

analysis::Report report_of(const std::vector<std::string>& inputs) {
  Input input = load_steps(inputs);
  symbolize(input.trace, SymbolOptions());
  return analysis::make_report(input.trace, analysis::Depth::all);
}

// A new directory of this user's for temporary files.
std::string temporary_folder() {
  std::error_code error;
  std::string name = (fs::temp_directory_path(error) / "gpuprof-XXXXXX").string();
  if (error || !::mkdtemp(name.data())) {
    throw Failure(
        fmt::format("open: no temporary directory: {}; set TMPDIR", std::strerror(errno)));
  }
  return name;
}

std::string page_beside(const std::string& input) {
  std::error_code error;
  const bool directory = fs::is_directory(input, error);
  fs::path folder = directory ? fs::path(input) : fs::path(input).parent_path();
  if (folder.empty()) folder = ".";
  if (input == "-" || ::access(folder.c_str(), W_OK) != 0) folder = temporary_folder();
  const std::string name =
      directory || input == "-" ? "report" : fs::path(input).filename().string();
  return (folder / (name + ".html")).string();
}

// To a name that gpuprof chose.
void write_beside(const std::string& path, std::string_view text) {
  OutputFile file(path, Compression::none, Links::replaced);
  file.write(text);
  if (!file.commit()) throw Failure(file.error());
}

std::string file_address(const std::string& path) {
  return "file://" + percent_encoded(fs::absolute(path).string(), "/");
}

void say_how_to_reach(const std::string& address, uint16_t port) {
  if (is_remote_session()) {
    print_note(fmt::format("on the machine in front of you: {}", forwarding_command(port)));
  }
  print_note(fmt::format("then open {}   (served once; Ctrl-C ends this)", address));
}

// A trace for the time that it is served.
class TemporaryTrace {
 public:
  TemporaryTrace()
      : folder_(temporary_folder()),
        listed_folder_(folder_),
        path_(folder_ + "/trace"),
        listed_path_(path_) {}
  ~TemporaryTrace() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  TemporaryTrace(const TemporaryTrace&) = delete;
  TemporaryTrace& operator=(const TemporaryTrace&) = delete;
  const std::string& path() const { return path_; }

 private:
  const std::string folder_;
  const Unfinished listed_folder_;
  const std::string path_;
  const Unfinished listed_path_;
};

}  // namespace

std::string write_page(const std::vector<std::string>& inputs, const std::string& output) {
  const std::string page = report_html(report_json(report_of(inputs)));
  if (!output.empty()) {
    put_to(output, page, Escaping::ready);
    return output;
  }
  const std::string path = page_beside(inputs[0]);
  write_beside(path, page);
  return path;
}

void show_page(const std::string& path, uint16_t port) {
  if (is_remote_session()) {
    return serve_once({path, "report.html", "text/html; charset=utf-8", ""}, port,
                      say_how_to_reach);
  }
  const std::string address = file_address(path);
  const bool shown = start_browser(address);
  print_note(shown ? fmt::format("{} is in the browser", path)
                   : fmt::format("no browser could be started here; the page is {}", address));
}

void show_in_perfetto(const std::vector<std::string>& inputs, uint16_t port) {
  const Input input = load_windows(inputs);
  const TemporaryTrace trace;
  std::string error;
  if (!find_exporter("perfetto")->write(input.trace, trace.path(), ExportOptions(), error)) {
    throw Failure(error);
  }
  serve_once({trace.path(), "gpuprof.perfetto-trace", "application/octet-stream", kPerfetto}, port,
             [&](const std::string& address, uint16_t reached) {
               const std::string page = perfetto_page(input.trace, address);
               if (is_remote_session() || !start_browser(page)) {
                 return say_how_to_reach(page, reached);
               }
               print_note(
                   fmt::format("{} is in the browser and fetches the trace from 127.0.0.1:{} once, "
                               "for which this waits; Ctrl-C ends it",
                               kPerfetto, reached));
             });
}

void report_run(const std::string& folder, const std::string& format, const NamePath& name) {
  if (format == "html") {
    const std::string path = write_page({folder}, "");
    return print_note(fmt::format("the report: {}", name(path)));
  }
  const analysis::Report report = report_of({folder});
  if (format == "json") {
    const std::string path = folder + "/report.json";
    std::string text;
    escape_for_terminal(dump_json(report_json(report), 2) + "\n", Layout::lines,
                        [&](std::string_view piece) { text += piece; });
    write_beside(path, text);
    return print_note(fmt::format("the report: {}", name(path)));
  }
  TextOptions options;
  options.colours = has_colours(STDERR_FILENO);
  options.width = terminal_columns();
  const std::string text = format == "text"
                               ? report_text(report, options)
                               : verdict_text(report, options, kVerdictLines,
                                              "gpuprof report " + shell_quoted(name(folder)));
  // The program has written to standard output; what we say goes where our lines go.
  for (std::string_view rest = text; !rest.empty();) {
    const ssize_t count = ::write(STDERR_FILENO, rest.data(), rest.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return;
    rest.remove_prefix(static_cast<size_t>(count));
  }
}

}  // namespace gpuprof
