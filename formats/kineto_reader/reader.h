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

// Reads what is readable. What is not is said in trace.problems, a line for each sort with the
// place of the first (of gzip: in the decompressed text). Memory beyond the trace: a few stretches
// of text.
KinetoFile read_kineto(const std::string& path, Trace& trace, const KinetoOptions& options = {});

}  // namespace gpuprof
