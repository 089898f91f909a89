// SPDX-License-Identifier: Apache-2.0
// Kineto's JSON traces (torch.profiler, our own exports), plain or gzip, into the in-memory trace.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/trace/trace.h"

namespace gpuprof {

struct KinetoOptions {
  unsigned threads = 0;              // that read events; 0: as many as there are processors
  size_t stretch_bytes = 1 << 20;    // of text that a thread takes at a time
  size_t longest_event = 64u << 20;  // of what is longer nothing is kept
};

struct KinetoFile {
  size_t processes = 0;  // appended to the trace
  uint64_t bytes = 0;    // of the file
};

// Whether a file is one of those, by its first bytes.
bool is_kineto(const std::string& path);
// Of a file that is not, the line that says what it holds instead, and what is read. Empty: its
// contents are not known; a dump's are not.
std::string why_not_kineto(const std::string& path);
// Of the files of a directory, those that are traces. Where others have written some, not those
// that we have: they are made of the others.
std::vector<std::string> kineto_traces(const std::vector<std::string>& files);

// Reads what is readable. What is not is said in trace.problems, a line for each sort with the
// place of the first (of gzip: in the decompressed text). Memory beyond the trace: a few stretches
// of text.
KinetoFile read_kineto(const std::string& path, Trace& trace, const KinetoOptions& options = {});

}  // namespace gpuprof
