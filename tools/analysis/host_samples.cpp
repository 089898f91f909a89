// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/host_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>

#include "tools/analysis/code_place.h"
#include "tools/analysis/walks.h"

namespace gpuprof::analysis {
namespace {

// The samples of one thread: of the one that steps run on, else of that with most.
std::span<const HostSample> samples_of_main(const Timeline& timeline) {
  const std::vector<HostSample>& all = timeline.process->samples;
  const auto of_thread = [&](uint32_t thread) {
    const auto [first, last] = std::equal_range(
        all.begin(), all.end(), HostSample{0, thread, StackIndex::none},
        [](const HostSample& a, const HostSample& b) { return a.thread < b.thread; });
    return std::span<const HostSample>(first, last);
  };
  if (timeline.main_thread != kNone) {
    const auto own = of_thread(timeline.threads[timeline.main_thread].id);
    if (!own.empty()) return own;
  }
  std::span<const HostSample> most;
  for (size_t i = 0; i < all.size();) {
    const auto own = of_thread(all[i].thread);
    if (own.size() > most.size()) most = own;
    i += own.size();
  }
  return most;
}

// What a sample stands for.
Interval time_of(std::span<const HostSample> samples, size_t i, int64_t period) {
  const int64_t time = samples[i].time;
  const int64_t before = i ? (time - samples[i - 1].time) / 2 : period / 2;
  const int64_t after = i + 1 < samples.size() ? (samples[i + 1].time - time) / 2 : period / 2;
  return {time - std::min(before, period), time + std::min(after, period)};
}

std::array<Measure, kParts> measures_of(const IdleTimes& idle) {
  const auto measure = [&](size_t part) { return Measure(cover(idle[part])); };
  return {measure(0), measure(1), measure(2), measure(3), measure(4),
          measure(5), measure(6), measure(7), measure(8), measure(9)};
}

bool holds(const Intervals& set, int64_t time) {
  const auto after = std::upper_bound(
      set.begin(), set.end(), time, [](int64_t t, const Interval& each) { return t < each.begin; });
  return after != set.begin() && time < std::prev(after)->end;
}

// Code that was no file: that of `python -c`, and what a library made, as dataclasses do.
bool is_code_of_option(const Frame& frame) {
  return frame.python && frame.file == "<string>" && !frame.function.starts_with("__create_fn__");
}

// What a stack's time is counted for: the innermost line of Python that is the program's own, or of
// Python at all, or function of its executable, or function.
struct Counted {
  CodeLine own;
  std::vector<std::string> within;  // the functions that it called, innermost first
  std::vector<std::string> names;   // of all frames, innermost first
};

Counted counted(const Process& process, std::span<const uint64_t> addresses) {
  struct Named {
    const Frame* frame;
    const Module* module;  // of native code
  };
  std::vector<Named> named;
  Counted out;
  for (const uint64_t address : addresses) {
    const std::span<const Frame> frames = process.stacks.frames(address);
    if (frames.empty()) out.names.push_back(process.stacks.place(address));
    for (const Frame& frame : frames) {
      out.names.push_back(frame.line
                              ? fmt::format("{} ({}:{})", frame.function, frame.file, frame.line)
                              : frame.function);
      named.push_back({&frame, frame.python ? nullptr : process.stacks.module_of(address)});
    }
  }
  const auto first = [&](auto matches) {
    return std::find_if(named.begin(), named.end(), matches);
  };
  auto own =
      first([](const Named& n) { return n.frame->python && !is_library_file(n.frame->file); });
  // What `python -c` runs has no file: its code is the outermost.
  if (own == named.end() && !named.empty() && is_code_of_option(*named.back().frame)) {
    own = first([](const Named& n) { return is_code_of_option(*n.frame); });
  }
  if (own == named.end()) own = first([](const Named& n) { return n.frame->python; });
  if (own == named.end()) {
    const std::string& program = process.header.executable();
    own = first([&](const Named& n) { return n.module && n.module->path == program; });
  }
  if (own == named.end()) own = named.begin();
  if (own == named.end()) {
    if (!addresses.empty()) out.own.function = process.stacks.place(addresses.front());
    return out;
  }
  out.own.file = own->frame->file;
  out.own.function = own->frame->function;
  out.own.line = own->frame->line;
  if (out.own.file.empty() && own->module) {
    out.own.file = own->module->path.substr(own->module->path.rfind('/') + 1);
  }
  for (auto inner = named.begin(); inner != own; ++inner) {
    out.within.push_back(inner->frame->function);
  }
  return out;
}

}  // namespace

std::string few_samples(uint32_t samples) {
  constexpr uint32_t kEnough = 10;
  if (samples >= kEnough) return {};
  return fmt::format(" (by {} sample{})", samples, samples == 1 ? "" : "s");
}

void HostSampleSums::add_idle(const Process& process, StackIndex stack,
                              const std::array<double, kParts>& part_us) {
  auto [own, within, names] = counted(process, process.stacks[stack]);
  if (own.function.empty()) return;
  const double total = std::accumulate(part_us.begin(), part_us.end(), 0.0);
  HostLine& line = lines_.add(own, within, total);
  line.samples += total > 0;
  out_.idle_samples += total > 0;
  for (size_t i = 0; i < kParts; ++i) {
    line.part_us[i] += part_us[i];
    line.part_samples[i] += part_us[i] > 0;
  }
  std::reverse(names.begin(), names.end());
  stacks_[std::move(names)] += total;
  out_.idle_us += total;
}

// Samples that were taken in a call of their thread that waits: what stack they have is that
// call's.
void HostSampleSums::add_waits(const Timeline& timeline, std::span<const HostSample> samples) {
  const auto thread =
      std::find_if(timeline.threads.begin(), timeline.threads.end(),
                   [&](const HostThread& each) { return each.id == samples.front().thread; });
  if (thread == timeline.threads.end() || timeline.steps.empty()) return;
  const int64_t begin = timeline.steps.front().begin, end = timeline.steps.back().end;
  size_t at = 0;
  Call call;
  for (ThreadWalk walk(timeline, static_cast<uint32_t>(thread - timeline.threads.begin()));
       walk.next(call);) {
    while (at < samples.size() && samples[at].time < std::max(call.begin, begin)) ++at;
    if (at == samples.size() || samples[at].time >= end) return;
    if (samples[at].time >= call.end) continue;
    if (call.kind != CallClass::synchronize && !call.blocking) continue;
    for (; at < samples.size() && samples[at].time < std::min(call.end, end); ++at) {
      const Interval time = time_of(samples, at, timeline.process->sample_period);
      const double us = static_cast<double>(time.end - time.begin) / 1000;
      const Process& process = *timeline.process;
      const Counted stack = counted(process, process.stacks[samples[at].stack]);
      if (stack.own.function.empty()) continue;
      ++waiting_.add(stack.own, stack.within, us).samples;
      out_.wait_us += us;
    }
  }
}

void HostSampleSums::add(const Timeline& timeline, const IdleTimes& times) {
  const std::span<const HostSample> samples = samples_of_main(timeline);
  if (samples.empty()) return;
  const std::array<Measure, kParts> idle = measures_of(times);
  std::array<double, kParts> idle_us{}, weights{};
  struct Taken {
    StackIndex stack;
    size_t part;
    double weight;
  };
  std::vector<Taken> taken;  // while no GPU worked
  for (size_t i = 0; i < samples.size(); ++i) {
    const Interval time = time_of(samples, i, timeline.process->sample_period);
    size_t part_of = kParts;
    for (size_t part = 0; part < kParts; ++part) {
      idle_us[part] += static_cast<double>(idle[part].inside(time.begin, time.end)) / 1000;
      if (part_of == kParts && holds(idle[part].set(), samples[i].time)) part_of = part;
    }
    ++out_.samples;
    if (part_of == kParts) continue;
    taken.push_back({samples[i].stack, part_of, static_cast<double>(time.end - time.begin)});
    weights[part_of] += taken.back().weight;
  }
  // What ran in one part, or while a GPU worked, did not run in the part beside it.
  for (const Taken& each : taken) {
    std::array<double, kParts> part_us{};
    part_us[each.part] = idle_us[each.part] * each.weight / weights[each.part];
    add_idle(*timeline.process, each.stack, part_us);
  }
  add_waits(timeline, samples);
}

HostSamples HostSampleSums::take() {
  out_.lines = lines_.take();
  out_.waiting = waiting_.take();
  for (const auto& [frames, us] : stacks_) out_.stacks.push_back({frames, us});
  std::stable_sort(out_.stacks.begin(), out_.stacks.end(),
                   [](const IdleStack& a, const IdleStack& b) { return a.idle_us > b.idle_us; });
  return std::move(out_);
}

}  // namespace gpuprof::analysis
