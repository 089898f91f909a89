// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as a trace file: read into a trace at once, and in small stretches that end where
// they must not.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "formats/kineto/reader.h"
#include "formats/kineto/texts.h"
#include "formats/slices.h"

namespace {

using namespace gpuprof;

void require(bool holds) {
  if (!holds) std::abort();
}

void check(const Trace& trace) {
  for (const Process& process : trace.processes) {
    size_t count = 0;
    for (const Lane& lane : process.lanes) {
      const auto events = process.lane_events(lane);
      count += events.size();
      for (size_t i = 0; i < events.size(); ++i) {
        const Event& event = events[i];
        require(event.begin >= 0 && event.begin <= event.end);
        require(i == 0 || events[i - 1].begin <= event.begin);
        require(number(event.shape) < trace.shapes.size());
        require(event.extra < process.extras.size());
        require(event.partner == EventIndex::none || number(event.partner) < process.events.size());
        const std::string_view args = trace.text(process.extra(event).args);
        require(args.empty() || kineto::are_strict_members(args));
      }
    }
    require(count == process.events.size());
    require(process.operators.empty() || process.operators.size() == count);
    require(process.metadata.empty() || kineto::are_strict_members(process.metadata));
    memory_curves(trace, process);
    process.window_steps();
  }
  for (const Problem& problem : trace.problems) require(!problem.text().empty());
}

void load(const std::string& path, const KinetoOptions& options) {
  Trace trace;
  const KinetoFile file = read_kineto(path, trace, options);
  require(file.processes > 0 || !trace.problems.empty());
  check(trace);
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
