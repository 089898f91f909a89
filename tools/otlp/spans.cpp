// SPDX-License-Identifier: Apache-2.0
#include "tools/otlp/spans.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "formats/views/left_out_text.h"
#include "tools/otlp/identity.h"
#include "tools/otlp/known_parts.h"

namespace gpuprof::otlp {
namespace {

using namespace analysis;

constexpr int kSpanKindInternal = 1;

// As GPUPROF_BUDGET's kinds are called; of a step or a part of it.
std::vector<std::string> left_out_of(const Process& process, const StepAnatomy& step) {
  std::vector<std::string> out;
  for (const RecordingBudget::LeftOut& each : process.budget.left_out) {
    if (each.since < step.end) out.emplace_back(left_out_name(each.kind));
  }
  return out;
}

Json attributes_of(const Exported& source, const StepAnatomy& step, const KnownParts& known) {
  Attributes out;
  out.whole("gpuprof.step", static_cast<int64_t>(step.step));
  out.whole("gpuprof.window", source.process->header.window());
  if (known.any) out.whole("gpuprof.step.gpu_busy_ns", busy_ns(step.parts));
  for (size_t i = 0; i < kParts; ++i) {
    const auto part = static_cast<Part>(i);
    if (known.has(part))
      out.whole(fmt::format("gpuprof.step.{}_ns", part_name(part)), step.parts[i]);
  }
  out.texts("gpuprof.left_out", left_out_of(*source.process, step));
  return out.take();
}

}  // namespace

SpanCount write_spans(std::span<const Exported> sources, int64_t begin, LineWriter& out) {
  SpanCount count;
  for (const Exported& source : sources) {
    if (!source.steps || source.steps->empty()) continue;
    const std::string trace = trace_id(*source.process, begin);
    const KnownParts known = known_parts(source);
    out.begin(process_resource(*source.process), scope_of(*source.process));
    for (const StepAnatomy& step : *source.steps) {
      if (step.begin < 0 || step.end < step.begin) {
        ++count.impossible;
        continue;
      }
      out.add({{"traceId", trace},
               {"spanId", span_id(source, step)},
               {"name", source.timeline->whole_window ? "window" : "step"},
               {"kind", kSpanKindInternal},
               {"startTimeUnixNano", unix_nano(step.begin)},
               {"endTimeUnixNano", unix_nano(step.end)},
               {"attributes",
                attributes_of(source, step, known_until(known, *source.process, step.end))}});
      ++count.spans;
    }
  }
  out.end();
  return count;
}

}  // namespace gpuprof::otlp
