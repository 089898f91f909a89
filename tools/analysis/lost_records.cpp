// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/lost_records.h"

#include <algorithm>
#include <string_view>

namespace gpuprof::analysis {
namespace {

bool has_graphs(const Trace& trace) {
  return std::any_of(trace.shapes.begin(), trace.shapes.end(), [&](const Shape& shape) {
    return is_stream_work(shape.kind)
               ? shape.kind == Kind::gpu_graph || shape.graph != 0
               : shape.kind == Kind::launch &&
                     trace.text(shape.name).find("GraphLaunch") != std::string_view::npos;
  });
}

}  // namespace

uint64_t dropped_and_known(const Timeline& timeline) {
  const Process& process = *timeline.process;
  const bool counted = !process.recovered && process.completeness == Completeness::complete;
  const bool known = counted && timeline.works > 0 && timeline.orphans == 0;
  if (!known || has_graphs(*timeline.trace)) return 0;
  return process.losses[static_cast<size_t>(Loss::cupti_dropped)];
}

}  // namespace gpuprof::analysis
