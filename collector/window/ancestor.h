// SPDX-License-Identifier: Apache-2.0
// The nearest ancestor process that is being profiled, known by its ring, which is found among its
// open files.
#pragma once

#include "collector/record/session.h"
#include "formats/core/ring_file.h"

namespace gpuprof {

struct Ancestor {
  const RingHeader* header;          // the first page of its ring, read-only; null: not found
  char stem[sizeof(Session::stem)];  // path of its dumps, without "_w<number>.gpuprof"
};

// Fills in what was not found before. A fork server, or a launcher, may lie in between.
void find_ancestor(Ancestor& out);
void forget_ancestor(Ancestor& ancestor);

}  // namespace gpuprof
