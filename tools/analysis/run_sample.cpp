// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/run_sample.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "formats/trace/names.h"
#include "tools/analysis/anatomy.h"
#include "tools/analysis/walks.h"
#include "tools/describe.h"

namespace gpuprof::analysis {
namespace {

// torch.profiler's older traces list them with the operators.
bool names_step(std::string_view name) { return name.starts_with("ProfilerStep#"); }

// A step of all ranks: its place in RunSample::step_us, and how many ranks had it.
struct StepSlot {
  size_t index;
  double ranks = 0;
};

class Sampler {
 public:
  explicit Sampler(RunSample& out) : out_(out) {}

  std::vector<Timeline> add(const Trace& trace) {
    std::vector<Timeline> timelines = make_timelines(trace);
    for (const Timeline& timeline : timelines) {
      out_.gpu_timed = out_.gpu_timed || timeline.gpu_timed;
      if (timeline.process->step_source == "sync:1" && !timeline.steps.empty()) {
        out_.waits_in_step = std::max({out_.waits_in_step, timeline.joined_waits, uint32_t{1}});
      }
      if (timeline.has_clock_steps()) out_.clock_source = timeline.step_source();
      if (timeline.period_confidence == 0) continue;  // marked
      out_.step_confidence = std::min(out_.step_confidence.value_or(1), timeline.period_confidence);
    }
    const size_t before = out_.step_us.size();
    for (const Timeline& timeline : timelines) {
      for (const Step& step : timeline.steps) {
        StepSlot& slot = slot_of(timeline, step);
        slot.ranks += 1;
        out_.step_us[slot.index] += static_cast<double>(step.end - step.begin) / 1000;
      }
    }
    for (const Timeline& timeline : timelines) add_timeline(timeline);
    for (const auto& [place, slot] : slots_) out_.step_us[slot.index] /= slot.ranks;
    for (auto& [key, sample] : out_.keys) {
      sample.step_us.resize(out_.step_us.size());
      for (const auto& [place, slot] : slots_) sample.step_us[slot.index] /= slot.ranks;
      thin(sample.duration_us);
    }
    if (before == 0 && !timelines.empty()) out_.program = program_of(timelines.front());
    return timelines;
  }

 private:
  StepSlot& slot_of(const Timeline& timeline, const Step& step) {
    const auto [at, fresh] = slots_.try_emplace(
        std::pair(timeline.process->header.window(), step.step), StepSlot{out_.step_us.size(), 0});
    if (fresh) out_.step_us.push_back(0);
    return at->second;
  }

  KeySample& sample_of(SampleKey key) {
    KeySample& sample = out_.keys[std::move(key)];
    sample.step_us.resize(out_.step_us.size());
    return sample;
  }

  void add_event(const Timeline& timeline, int64_t begin, int64_t length, KeySample& sample) {
    const Step* const step = timeline.step_at(begin);
    if (!step) return;
    const double us = static_cast<double>(length) / 1000;
    sample.step_us[slot_of(timeline, *step).index] += us;
    sample.duration_us.push_back(us);
    ++sample.count;
  }

  void add_timeline(const Timeline& timeline) {
    const Trace& trace = *timeline.trace;
    std::unordered_map<uint32_t, KeySample*> by_shape;
    each_issued_work_of_steps(timeline, [&](const Work& work, int64_t issued) {
      const ShapeIndex shape = timeline.events().shape_of(work.event);
      KeySample*& sample = by_shape[number(shape)];
      if (!sample) sample = &sample_of(key_of(trace, trace.shapes[shape]));
      add_event(timeline, issued, work.end - work.begin, *sample);
    });
    by_shape.clear();
    for (const Event& event : timeline.process->events) {
      const Shape& shape = trace.shape(event);
      if (shape.kind != Kind::op || names_step(trace.text(shape.label))) continue;
      KeySample*& sample = by_shape[number(event.shape)];
      if (!sample) sample = &sample_of({"operator", std::string(trace.text(shape.label))});
      add_event(timeline, event.begin, event.end - event.begin, *sample);
    }
    add_collectives(timeline);
    const std::vector<StepAnatomy> steps = dissect(timeline);
    for (size_t i = 0; i < steps.size(); ++i) {
      const StepAnatomy& step = steps[i];
      for (size_t part = 0; part < kParts; ++part) {
        KeySample& sample = sample_of({"cause", std::string(part_name(static_cast<Part>(part)))});
        sample.step_us[slot_of(timeline, timeline.steps[i]).index] +=
            static_cast<double>(step.parts[part]) / 1000;
      }
    }
  }

  // Those of groups that the program names: kernels alone do not say of which group they are.
  void add_collectives(const Timeline& timeline) {
    const Trace& trace = *timeline.trace;
    for (const CollectiveKernel& pair : timeline.process->collective_kernels) {
      const Event call = timeline.process->event(pair.collective);
      const Event kernel = timeline.process->event(pair.kernel);
      const Shape& shape = trace.shape(call);
      const std::string_view group =
          group_label(trace.text(shape.group), trace.text(shape.group_description));
      if (group.empty()) continue;
      KeySample& sample =
          sample_of({"collective", fmt::format("{} in {}", trace.text(shape.name), group)});
      add_event(timeline, call.begin, kernel.end - kernel.begin, sample);
    }
  }

  static SampleKey key_of(const Trace& trace, const Shape& shape) {
    const std::string name(trace.text(shape.label));
    if (shape.kind == Kind::gpu_copy || shape.kind == Kind::gpu_set) return {"copy", name};
    return {"kernel", fmt::format("{} <<<{}x{}x{}, {}x{}x{}>>>", name, shape.grid.x, shape.grid.y,
                                  shape.grid.z, shape.block.x, shape.block.y, shape.block.z)};
  }

  static void thin(std::vector<double>& values) {
    if (values.size() <= kMaxDurations) return;
    const size_t stride = (values.size() + kMaxDurations - 1) / kMaxDurations;
    size_t kept = 0;
    for (size_t i = 0; i < values.size(); i += stride) values[kept++] = values[i];
    values.resize(kept);
  }

  static std::vector<std::vector<std::string>> program_of(const Timeline& timeline) {
    std::vector<std::vector<std::string>> out;
    if (timeline.steps.empty()) return out;
    const Step& step = timeline.steps[timeline.steps.size() / 2];
    out.resize(timeline.streams.size());
    each_work(timeline, [&](const Work& work) {
      const int64_t issued = timeline.issued_at(work);
      if (issued < step.begin || issued >= step.end) return;
      SampleKey key = key_of(*timeline.trace, timeline.shape(work.event));
      if (key.kind == "kernel") out[work.stream].push_back(std::move(key.name));
    });
    return out;
  }

  RunSample& out_;
  std::map<std::pair<uint32_t, uint64_t>, StepSlot> slots_;  // by window and step
};

}  // namespace

std::optional<double> RunSample::recording_pct() const {
  if (!recording_known_ || windows_ns_ <= 0) return std::nullopt;
  return 100 * recording_ns_ / windows_ns_;
}

void RunSample::add_budget(const Timeline& timeline) {
  const Process& process = *timeline.process;
  const OwnCost cost = own_cost(process);
  recording_known_ = recording_known_ && own_cost_known(process);
  recording_ns_ += static_cast<double>(cost.hooks_ns + cost.cupti_ns);
  windows_ns_ += static_cast<double>(process.window_end - process.window_begin);
  if (timeline.steps.empty()) return;
  const int64_t end = timeline.steps.back().end;
  for (size_t i = 0; i < kParts; ++i) {
    lacks_part[i] = lacks_part[i] || !is_known(static_cast<Part>(i), process, end, {});
  }
  lacks_operators = lacks_operators || lacks(process, ShedKind::operators, end);
}

void RunSample::add_run(const Trace& trace) {
  setup.add_run(trace);
  left_out.add(left_out_of(trace));
  for (const Timeline& timeline : Sampler(*this).add(trace)) add_budget(timeline);
}

}  // namespace gpuprof::analysis
