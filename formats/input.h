// SPDX-License-Identifier: Apache-2.0
// What the user named as INPUT, loaded: dumps, what a killed process left, Kineto's JSON traces
// (plain or gzip), directories of them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "formats/job_choice.h"
#include "formats/trace/trace.h"

namespace gpuprof {

struct InputFile {
  std::string path;
  uint64_t bytes = 0;
  size_t processes = 0;          // that it gave (Process::path names it)
  bool completed_other = false;  // a ring: it gave the rest of what another file gave
};

struct Input {
  Trace trace;                   // with `problems` and `notes` for the user, one line each
  std::vector<InputFile> files;  // as read, in order; a ring that completes a dump is listed too

  // Whether anything was readable. Where not, `trace.problems` has at least one line.
  bool readable() const { return !trace.processes.empty(); }
};

struct InputOptions {
  // Called before each file with its path, its number from 0 and the number of files; may be empty.
  std::function<void(const std::string& path, size_t number, size_t count)> progress;
  // Of one path, or where a choice is made, one attempt of one job is kept (job_choice.h). Several
  // paths without a choice are read as named.
  JobChoice choice;
};

// Loads every input. A directory is searched with what is below it. Of several runs the one that
// `latest` links to is taken, else the newest, and a note says so. `X.gpuprof.part` and
// `X.gpuprof.ring` of one process become one Process. Where there is no dump, JSON traces are
// looked for (`*.json`, `*.json.gz`). Other files in directories are passed over; a file that is
// named directly is read whatever it is called. Nothing is thrown for what is on disk.
Input load_input(const std::vector<std::string>& paths, const InputOptions& options = {});

}  // namespace gpuprof
