// SPDX-License-Identifier: Apache-2.0
#include "tools/otlp/spans.h"

#include <fmt/format.h>

#include "tools/otlp/identity.h"
#include "tools/otlp/known_parts.h"

namespace gpuprof::otlp {
namespace {

using namespace analysis;

constexpr int kSpanKindInternal = 1;

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
               {"attributes", attributes_of(source, step, known)}});
      ++count.spans;
    }
  }
  out.end();
  return count;
}

}  // namespace gpuprof::otlp
