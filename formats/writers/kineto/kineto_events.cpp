// SPDX-License-Identifier: Apache-2.0
#include "formats/writers/kineto/kineto_events.h"

#include <algorithm>

#include "formats/trace/names.h"
#include "formats/views/event_category.h"
#include "formats/views/gpu_annotations.h"

namespace gpuprof {
namespace {

constexpr int64_t kStepGapNs = 2;

}  // namespace

KinetoRow::KinetoRow(uint32_t process, uint64_t thread)
    : pid(process),
      tid(thread),
      text(",\"pid\":" + std::to_string(process) + ",\"tid\":" + std::to_string(thread) +
           ",\"ts\":") {}

KinetoEvents::KinetoEvents(const Trace& trace, KinetoSpelling spelling)
    : trace_(trace), spelling_(spelling) {
  shapes_.reserve(trace.shapes.size());
  for (const Shape& shape : trace.shapes) {
    const bool launches =
        shape.kind == Kind::launch || shape.kind == Kind::copy || shape.kind == Kind::set;
    shapes_.push_back({head_of(shape), launches, is_stream_work(shape.kind) && drawable(shape)});
  }
}

void KinetoEvents::enter(const Process& process, const ChromeArgs& args, KinetoContext context) {
  process_ = &process;
  args_ = &args;
  context_ = std::move(context);
}

std::string KinetoEvents::head_of(const Shape& shape) const {
  std::string_view name = trace_.text(shape.label);
  std::string_view category = category_of(trace_, shape);
  std::string_view phase = "X", scope;
  if (is_instant(shape.kind)) {
    if (shape.kind == Kind::nvtx_mark) category = "cpu_instant_event";
    phase = "i";
    scope = shape.value == 'g'   ? ",\"s\":\"g\""
            : shape.value == 'p' ? ",\"s\":\"p\""
                                 : ",\"s\":\"t\"";
  } else if (!is_gpu_kind(shape.kind)) {
    if (shape.kind == Kind::collective) name = collective_name(name).annotation;
    category = host_category(shape, name);
    if (category == "cuda_runtime") name = plain_runtime_name(name);
    const bool call = category == "cuda_runtime" || category == "cuda_driver";
    if (call && spelling_ == KinetoSpelling::tensorboard) category = "Runtime";
  }
  std::string head;
  JsonText(head)
      .raw(",\n{\"ph\":\"")
      .raw(phase)
      .raw("\",\"cat\":")
      .string(category)
      .raw(scope)
      .raw(",\"name\":")
      .string(name);
  return head;
}

// torch-tb-profiler 0.4 looks for data loaders among operators only.
std::string_view KinetoEvents::host_category(const Shape& shape, std::string_view name) const {
  if (shape.kind == Kind::nvtx_range && names_torch_data_loader(name)) return "cpu_op";
  const bool annotation = shape.kind == Kind::nvtx_range || shape.kind == Kind::collective ||
                          shape.domain == ApiDomain::nccl;
  return annotation ? "user_annotation" : category_of(trace_, shape);
}

void KinetoEvents::times(JsonText& json, int64_t begin, int64_t end, const KinetoRow& row,
                         uint32_t stack) const {
  json.raw(row.text).microseconds(begin - context_.base);
  json.raw(",\"dur\":").microseconds(end - begin);
  if (stack) json.raw(",\"sf\":\"").number(stack).raw("\"");
  json.raw(",\"args\":");
}

void KinetoEvents::slice(JsonText& json, ShapeIndex shape, int64_t begin, int64_t end,
                         const KinetoRow& row, uint32_t stack) const {
  json.raw(shapes_[static_cast<uint32_t>(shape)].head);
  times(json, begin, end, row, stack);
}

void KinetoEvents::flow(JsonText& json, bool start, uint32_t correlation, const KinetoRow& row,
                        int64_t time) const {
  json.raw(start ? ",\n{\"ph\":\"s\",\"id\":" : ",\n{\"ph\":\"f\",\"id\":");
  json.number(context_.flow_base + correlation).raw(row.text);
  json.microseconds(time - context_.base);
  json.raw(start ? ",\"cat\":\"ac2g\",\"name\":\"ac2g\"}"
                 : ",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"bp\":\"e\"}");
}

void KinetoEvents::mark(JsonText& json, const Event& event, const KinetoRow& row) const {
  json.raw(shapes_[static_cast<uint32_t>(event.shape)].head).raw(row.text);
  json.microseconds(event.begin - context_.base).raw(",\"args\":");
  args_->host(json, event);
  json.raw("}");
}

void KinetoEvents::step(JsonText& json, const Slice& slice, const KinetoRow& row) const {
  const auto steps = process_->window_steps();
  const auto step = std::find_if(steps.begin(), steps.end(), [&](const Step& candidate) {
    return candidate.begin == slice.begin && candidate.end >= slice.end;
  });
  if (step == steps.end()) return;
  // A reader's sums of floating-point microseconds are off by a nanosecond;
  // steps that touch would overlap.
  const bool touches = step + 1 != steps.end() && step[1].begin == slice.end;
  const int64_t end = touches ? std::max(slice.begin, slice.end - kStepGapNs) : slice.end;
  json.raw(",\n{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#");
  json.number(step->step).raw("\"");
  times(json, slice.begin, end, row, 0);
  const auto number = static_cast<uint64_t>(step - steps.begin());
  json.raw("{\"External id\":").number(context_.first_step_id + number);
  json.raw(",\"gpuprof step ns\":").number(slice.end - slice.begin).raw("}}");
}

// Whether a call has work on a stream that is drawn.
bool KinetoEvents::launches_work(EventIndex call) const {
  const EventTable& events = process_->events;
  if (!shapes_[static_cast<uint32_t>(events.shape_of(number(call)))].launches) return false;
  for (EventIndex work = events.partner_of(number(call)); work != EventIndex::none;
       work = events.next_sibling_of(number(work))) {
    if (is_drawn_work(events.shape_of(number(work)))) return true;
  }
  return false;
}

void KinetoEvents::host_slice(JsonText& json, const Event& event, const Slice& placed,
                              const KinetoRow& row) const {
  const StackIndex stack = process_->extra(event).stack;
  slice(json, event.shape, placed.begin, placed.end, row,
        context_.stack_nodes[static_cast<uint32_t>(stack)]);
  args_->host(json, event);
  json.raw("}");
  if (launches_work(event.index) && args_->shows_correlation(event.index)) {
    flow(json, true, event.correlation, row, placed.begin);
  }
}

void KinetoEvents::gpu_slice(JsonText& json, const Event& event, const Slice& placed,
                             const KinetoRow& row, uint64_t stream, const Lane& lane) const {
  uint32_t stack = 0;
  if (event.extra) {  // of a graph's node: where it was captured
    const GraphNode* const node = process_->graph_node(trace_.shape(event), process_->extra(event));
    if (node) stack = context_.stack_nodes[static_cast<uint32_t>(node->stack)];
  }
  slice(json, event.shape, placed.begin, placed.end, row, stack);
  args_->gpu(json, event, {row.pid, stream, device_of(*process_, lane.device), &lane});
  json.raw("}");
  const bool caused = event.partner != EventIndex::none && launches_work(event.partner) &&
                      args_->shows_correlation(event.partner);
  if (caused) flow(json, false, event.correlation, row, placed.begin);
}

void KinetoEvents::annotation(JsonText& json, const Event& range, const Slice& placed,
                              const KinetoRow& row) const {
  json.raw(",\n{\"ph\":\"X\",\"cat\":\"gpu_user_annotation\",\"name\":");
  json.string(trace_.text(trace_.shape(range).label));
  times(json, placed.begin, placed.end, row, 0);
  json.raw("{").raw(kDerived).raw("}}");
}

}  // namespace gpuprof
