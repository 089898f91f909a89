// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "formats/writers/exporter.h"
#include "formats/writers/kineto/chrome_export.h"
#include "formats/writers/kineto/kineto_export.h"
#include "formats/writers/memory_viz_export.h"
#include "formats/writers/perfetto/perfetto_export.h"
#include "formats/writers/speedscope_export.h"
#include "formats/writers/xplane/xplane_export.h"

namespace gpuprof {
namespace {

constexpr Exporter kExporters[] = {
    {"perfetto", ".pftrace", false, "Perfetto's own format; open it at ui.perfetto.dev",
     write_perfetto},
    {"perfetto-ranks", ".pftraces", true,
     "a directory of Perfetto traces, one per rank; BatchTraceProcessor, Bigtrace",
     write_perfetto_ranks},
    {"chrome", ".json", false,
     "trace event JSON with Kineto's keys; chrome://tracing, ui.perfetto.dev", write_chrome},
    {"kineto", ".kineto", true,
     "a directory of torch.profiler traces, one per rank; HTA, TensorBoard (torch-tb-profiler)",
     write_kineto},
    {"tensorboard", ".tensorboard", true,
     "a log directory for TensorBoard, with torch-tb-profiler or XProf", write_tensorboard},
    {"memory-viz", ".pickle", false, "a memory snapshot; pytorch.org/memory_viz", write_memory_viz},
    {"speedscope", ".speedscope.json", false,
     "flame graphs of GPU time and GPU idle time by what launched it; speedscope.app",
     write_speedscope},
    {"xplane", ".xplane", true, "a directory of XProf's files, one per rank", write_xplane},
};

}  // namespace

std::span<const Exporter> exporters() { return kExporters; }

const Exporter* find_exporter(std::string_view name) {
  const auto found = std::find_if(std::begin(kExporters), std::end(kExporters),
                                  [name](const Exporter& row) { return name == row.name; });
  return found == std::end(kExporters) ? nullptr : &*found;
}

}  // namespace gpuprof
