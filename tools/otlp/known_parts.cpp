// SPDX-License-Identifier: Apache-2.0
#include "tools/otlp/known_parts.h"

#include <algorithm>

#include "formats/trace/activities.h"

namespace gpuprof::otlp {
namespace {

using namespace analysis;

bool has_whole_graphs(const Timeline& timeline) {
  for (const Stream& stream : timeline.streams) {
    for (uint32_t event = stream.first_event; event < stream.end_event; ++event) {
      if (timeline.shape(event).kind == Kind::gpu_graph) return true;
    }
  }
  return false;
}

}  // namespace

KnownParts known_parts(const Exported& source) {
  KnownParts out;
  out.any = source.timeline->gpu_timed &&
            std::none_of(kGpuWorkActivities.begin(), kGpuWorkActivities.end(),
                         [&](Activity each) { return is_left_out(*source.process, each); });
  out.unset = unset_kinds(*source.process);
  out.apart = out.any && !has_whole_graphs(*source.timeline);
  return out;
}

KnownParts known_until(KnownParts known, const Process& process, int64_t end) {
  for (size_t i = 0; i < kParts; ++i) {
    known.left_out[i] = !is_known(static_cast<Part>(i), process, end, known.unset);
  }
  return known;
}

double StepSums::idle_share() const {
  double idle = 0;
  for (size_t i = kBusyParts; i < kParts; ++i) {
    if (static_cast<Part>(i) != Part::unknown) idle += parts_ns[i];
  }
  return idle / wall_ns;
}

StepSums sum_up(std::span<const Exported> sources) {
  StepSums out;
  out.known.any = out.known.apart = true;
  for (const Exported& source : sources) {
    if (!source.steps || source.steps->empty()) continue;
    const KnownParts known =
        known_until(known_parts(source), *source.process, source.steps->back().end);
    out.known.any &= known.any;
    out.known.apart &= known.apart;
    for (size_t i = 0; i < kParts; ++i) out.known.left_out[i] |= known.left_out[i];
    for (const StepAnatomy& step : *source.steps) {
      const auto length = static_cast<double>(step.end - step.begin);
      out.seconds.push_back(length / 1e9);
      out.wall_ns += length;
      for (size_t i = 0; i < kParts; ++i) out.parts_ns[i] += static_cast<double>(step.parts[i]);
    }
  }
  if (out.wall_ns <= 0) out.known = {};
  return out;
}

}  // namespace gpuprof::otlp
