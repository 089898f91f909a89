// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "formats/writers/exporter.h"

namespace gpuprof {

// A memory snapshot as torch.cuda.memory._dump_snapshot() pickles it, for pytorch.org/memory_viz:
// what was allocated on GPUs and released in the window, with native stacks where they were
// recorded. GPUs of several processes are counted through. See Exporter::write.
bool write_memory_viz(const Trace& trace, const std::string& path, const ExportOptions& options,
                      std::string& error);

// Whether there is anything to write: a snapshot without it opens as an empty page.
bool has_gpu_allocations(const Trace& trace);
// Whether segments are made up, for blocks that lie in none the trace tells of.
bool lacks_segments(const Trace& trace);

}  // namespace gpuprof
