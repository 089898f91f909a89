// SPDX-License-Identifier: Apache-2.0
// usage: kineto_read FILE [EVENTS]. Reads a Kineto trace in one and in two threads, beside a bare
// pass over the same bytes in the same run; with EVENTS, writes FILE first.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "formats/io/file_bytes.h"
#include "formats/kineto_reader/reader.h"

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// An operator, its launch, the arrow and the kernel, with all arguments that torch.profiler writes.
bool write_trace(const char* path, long events) {
  gpuprof::OutputFile out(path);
  out.write(R"({"schemaVersion":1,"baseTimeNanoseconds":1700000000000000000,"traceEvents":[)");
  char text[4096];
  for (long i = 0; i < events / 3; ++i) {
    const double begin = 1000.0 + static_cast<double>(i) * 21.337;
    const int size = std::snprintf(text, sizeof text,
                                   R"(%s
  {
    "ph": "X", "cat": "cpu_op", "name": "aten::op_%ld", "pid": 4242, "tid": 4242,
    "ts": %.3f, "dur": 18.125,
    "args": {
      "External id": %ld,"Record function id": 0, "Concrete Inputs": ["", "", "%ld"], "Input type": ["c10::Half", "c10::Half", ""], "Input Strides": [[1024, 1], [1, 1024], []], "Input Dims": [[%ld, 1024], [1024, 4096], []], "Sequence number": %ld, "Fwd thread id": 0, "Ev Idx": %ld
    }
  },
  {
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 4242, "tid": 4242,
    "ts": %.3f, "dur": 5.250,
    "args": {
      "External id": %ld, "cbid": 211, "correlation": %ld
    }
  },
  {
    "ph": "s", "id": %ld, "pid": 4242, "tid": 4242, "ts": %.3f,
    "cat": "ac2g", "name": "ac2g"
  },
  {
    "ph": "X", "cat": "kernel", "name": "void cutlass::Kernel2<cutlass_80_tensorop_f16_s16816gemm_f16_%ld_nn_align8>(cutlass_80::Params) ", "pid": 0, "tid": 7,
    "ts": %.3f, "dur": 11.777,
    "args": {
      "External id" : % ld, "queued" : 0, "device" : 0, "context" : 1, "stream" : 7,
          "correlation" : % ld, "registers per thread" : 168, "shared memory" : 49152,
          "blocks per SM" : 1.2, "warps per SM" : 9.7,
          "grid" : [ % ld, 4, 1 ], "block" : [ 256, 1, 1 ], "est. achieved occupancy %%" : 19
    }
  },
  {
    "ph": "f", "id": %ld, "pid": 0, "tid": 7, "ts": %.3f,
    "cat": "ac2g", "name": "ac2g", "bp": "e"
  })",
                                   i ? "," : "", i % 200, begin, i + 1, i % 50, i % 64 + 1, i, i,
                                   begin + 1, i + 1, i + 100, i + 100, begin + 1, i % 97, begin + 6,
                                   i + 1, i + 100, i % 64 + 1, i + 100, begin + 6);
    out.write(text, static_cast<size_t>(size));
  }
  out.write("\n]}\n");
  if (out.commit()) return true;
  std::fprintf(stderr, "%s\n", out.error().c_str());
  return false;
}

double bare_pass(const std::string& path, size_t& bytes) {
  std::string text, reason;
  const auto begin = Clock::now();
  if (!gpuprof::read_file(path, text, reason)) std::exit(2);
  bytes = text.size();
  size_t quotes = 0;
  const char* at = text.data();
  const char* const end = at + text.size();
  while ((at = static_cast<const char*>(std::memchr(at, '"', static_cast<size_t>(end - at))))) {
    ++quotes;
    ++at;
  }
  const double time = seconds_since(begin);
  std::printf("bare pass (read, memchr for quotes): %.2f GB/s, %zu quotes\n",
              static_cast<double>(bytes) / time / 1e9, quotes);
  return time;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s FILE [EVENTS]\n", argv[0]);
    return 2;
  }
  if (argc > 2 && !write_trace(argv[1], std::atol(argv[2]))) return 1;
  for (const unsigned threads : {1u, 2u}) {
    double best = 1e9;
    size_t events = 0;
    for (int round = 0; round < 3; ++round) {
      gpuprof::Trace trace;
      const auto begin = Clock::now();
      gpuprof::KinetoOptions options;
      options.threads = threads;
      gpuprof::read_kineto(argv[1], trace, options);
      best = std::min(best, seconds_since(begin));
      events = trace.processes.empty() ? 0 : trace.processes[0].events.size();
    }
    struct rusage usage {};
    ::getrusage(RUSAGE_SELF, &usage);
    size_t bytes = 0;
    const double bare = bare_pass(argv[1], bytes);
    std::printf(
        "%u thread%s: %.2f GB/s, %zu events, %.0f ns an event, %.1f x the bare pass; peak %ld MB\n",
        threads, threads == 1 ? "" : "s", static_cast<double>(bytes) / best / 1e9, events,
        best * 1e9 / static_cast<double>(std::max<size_t>(events, 1)), best / bare,
        usage.ru_maxrss / 1024);
  }
  return 0;
}
