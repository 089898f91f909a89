// SPDX-License-Identifier: Apache-2.0
// A trace of what a killed process left.
#pragma once

#include <string>
#include <vector>

#include "formats/dump/ring_reader.h"
#include "tests/unit/support/dump_maker.h"

namespace gpuprof::test {

struct Recovered {
  Trace trace;
  std::vector<Problem> problems;  // of the buffers; trace.problems: of what was read from them
  RingInfo info;
  bool ok = false;
};

// All windows of a ring file, without the chunks that a dump already has.
inline Recovered recover(const std::string& bytes, const KnownChunks& known = {}) {
  Recovered out;
  RingReader reader(bytes, "x.gpuprof.ring", out.problems);
  out.ok = reader.ok();
  if (!out.ok) return out;
  out.info = reader.info();
  ByteBuffer chunks;
  if (out.info.window_open) reader.recover({out.info.window, true}, known, chunks);
  out.trace = load(view(chunks));
  return out;
}

}  // namespace gpuprof::test
