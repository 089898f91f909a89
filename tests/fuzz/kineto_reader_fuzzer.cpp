// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as a trace file: read into a trace at once, and in small stretches that end where
// they must not.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "formats/kineto_reader/reader.h"
#include "tests/fuzz/trace_check.h"

namespace {

using namespace gpuprof;
using test::require;

void load(const std::string& path, const KinetoOptions& options) {
  Trace trace;
  const KinetoFile file = read_kineto(path, trace, options);
  require(file.processes > 0 || !trace.problems.empty());
  test::check_trace(trace);
  for (const Process& process : trace.processes) {
    for (const Event& event : process.events) require(event.begin >= 0);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const int file = ::memfd_create("kineto", MFD_CLOEXEC);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  require(file >= 0 && ::ftruncate(file, 0) == 0);
  require(::pwrite(file, data, size, 0) == static_cast<ssize_t>(size));
  load(path, {1, 1 << 20, 1 << 20});
  load(path, {1, 16, 1 << 12});
  return 0;
}
