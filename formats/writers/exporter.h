// SPDX-License-Identifier: Apache-2.0
// Writers of outside formats, a row each. Adding one: a file with its `write`, and its row.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "formats/io/file_bytes.h"
#include "formats/trace/trace.h"

namespace gpuprof {

struct ExportOptions {
  Compression compression = Compression::none;  // of a single file; directories have their own rule
  // Of the output's own name alone. What the exporter names in a directory is always replaced.
  Links links = Links::followed;
  // Called now and then with events written and events in all; may be empty.
  std::function<void(uint64_t done, uint64_t total)> progress;
};

// Events written so far, over all files of one conversion.
class ExportProgress {
 public:
  ExportProgress(const Trace& trace, const ExportOptions& options) : options_(options) {
    for (const Process& process : trace.processes) total_ += process.events.size();
  }
  void add(uint64_t events) {
    done_ += events;
    if (options_.progress) options_.progress(done_, total_);
  }
  // For whoever writes event by event: told now and then.
  void add_one() {
    constexpr uint64_t kNowAndThen = 1 << 16;
    if (++done_ % kNowAndThen == 0 && options_.progress) options_.progress(done_, total_);
  }

 private:
  const ExportOptions& options_;
  uint64_t done_ = 0, total_ = 0;
};

struct Exporter {
  const char* name;         // as in `gpuprof convert --to NAME`
  const char* suffix;       // of the output beside the input, with its dot
  bool directory;           // the output is a directory of files, made where it is missing
  const char* description;  // one line; says what opens it
  // Writes all processes of the trace to `path`: complete, or absent (in a directory: each file).
  // False: `error` says why in one line that names the file. Memory beyond the trace: a few MB and
  // what is proportional to streams.
  bool (*write)(const Trace& trace, const std::string& path, const ExportOptions& options,
                std::string& error);
};

std::span<const Exporter> exporters();
const Exporter* find_exporter(std::string_view name);  // null: no such

}  // namespace gpuprof
