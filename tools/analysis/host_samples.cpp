// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/host_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <tuple>

#include "tools/analysis/code_place.h"

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

std::array<Measure, kParts> measures_of(const IdleTimes& idle) {
  const auto measure = [&](size_t part) { return Measure(cover(idle[part])); };
  return {measure(0), measure(1), measure(2), measure(3),
          measure(4), measure(5), measure(6), measure(7)};
}

}  // namespace

std::string CodeLine::place() const {
  if (line == 0) return file.empty() ? function : fmt::format("{} ({})", function, file);
  return fmt::format("{}:{} {}", file.substr(file.rfind('/') + 1), line, function);
}

std::string mostly_within(const std::map<std::string, double>& times, double total) {
  double most = total / 2;
  std::string out;
  for (const auto& [function, us] : times) {
    if (us < most) continue;
    most = us;
    out = function;
  }
  return out;
}

namespace {

// What a stack's time is counted for: a line of Python where it has one, else a function.
struct Counted {
  Frame innermost, own;
  std::string native;              // the innermost function, where it is native
  std::vector<std::string> names;  // innermost first
};

// Native frames of a stack without Python; the program's own are those of its executable.
void count_native(const Process& process, std::span<const uint64_t> addresses, Counted& out) {
  for (const uint64_t address : addresses) {
    const Module* const module = process.stacks.module_of(address);
    for (Frame frame : process.stacks.frames(address)) {
      if (frame.file.empty() && module)
        frame.file = module->path.substr(module->path.rfind('/') + 1);
      if (out.innermost.function.empty()) out.innermost = frame;
      const bool own = module && module->path == process.header.executable();
      if (own && out.own.function.empty()) out.own = frame;
    }
  }
  if (out.innermost.function.empty() && !addresses.empty()) {
    out.innermost.function = process.stacks.place(addresses.front());
  }
}

Counted counted(const Process& process, std::span<const uint64_t> addresses) {
  Counted out;
  for (const uint64_t address : addresses) {
    const std::span<const Frame> frames = process.stacks.frames(address);
    if (frames.empty()) out.names.push_back(process.stacks.place(address));
    for (const Frame& frame : frames) {
      out.names.push_back(frame.line
                              ? fmt::format("{} ({}:{})", frame.function, frame.file, frame.line)
                              : frame.function);
      if (!frame.python && out.names.size() == 1) out.native = frame.function;
      if (!frame.python) continue;
      if (out.innermost.function.empty()) out.innermost = frame;
      if (out.own.function.empty() && !is_library_file(frame.file)) out.own = frame;
    }
  }
  if (out.innermost.function.empty()) count_native(process, addresses, out);
  if (out.own.function.empty()) out.own = out.innermost;
  return out;
}

}  // namespace

void HostSampleSums::add_sample(const Process& process, StackIndex stack,
                                const std::array<double, kParts>& part_us) {
  auto [innermost, own, native, names] = counted(process, process.stacks[stack]);
  if (innermost.function.empty()) return;
  const double total = std::accumulate(part_us.begin(), part_us.end(), 0.0);
  Sum& sum = lines_[{own.file, own.line ? std::to_string(own.line) : own.function}];
  sum.line.file = own.file;
  sum.line.line = own.line;
  sum.line.function = own.function;
  sum.line.idle_us += total;
  for (size_t i = 0; i < kParts; ++i) sum.line.part_us[i] += part_us[i];
  const bool elsewhere = std::tie(own.function, own.file, own.line) !=
                         std::tie(innermost.function, innermost.file, innermost.line);
  if (elsewhere) {
    sum.within[innermost.function] += total;
  } else if (own.python && !native.empty()) {
    sum.within[native] += total;
  }
  std::reverse(names.begin(), names.end());
  stacks_[std::move(names)] += total;
  out_.idle_us += total;
}

void HostSampleSums::add(const Timeline& timeline, const IdleTimes& times) {
  const std::span<const HostSample> samples = samples_of_main(timeline);
  if (samples.empty()) return;
  const int64_t period = timeline.process->sample_period;
  const std::array<Measure, kParts> idle = measures_of(times);
  for (size_t i = 0; i < samples.size(); ++i) {
    const int64_t time = samples[i].time;
    const int64_t before = i ? (time - samples[i - 1].time) / 2 : period / 2;
    const int64_t after = i + 1 < samples.size() ? (samples[i + 1].time - time) / 2 : period / 2;
    std::array<double, kParts> part_us{};
    double total = 0;
    for (size_t part = 0; part < kParts; ++part) {
      part_us[part] = static_cast<double>(idle[part].inside(time - std::min(before, period),
                                                            time + std::min(after, period))) /
                      1000;
      total += part_us[part];
    }
    ++out_.samples;
    if (total > 0) add_sample(*timeline.process, samples[i].stack, part_us);
  }
}

HostSamples HostSampleSums::take() {
  for (auto& [place, sum] : lines_) {
    sum.line.within = mostly_within(sum.within, sum.line.idle_us);
    out_.lines.push_back(std::move(sum.line));
  }
  for (const auto& [frames, us] : stacks_) out_.stacks.push_back({frames, us});
  const auto more = [](const auto& a, const auto& b) { return a.idle_us > b.idle_us; };
  std::stable_sort(out_.lines.begin(), out_.lines.end(), more);
  std::stable_sort(out_.stacks.begin(), out_.stacks.end(), more);
  return std::move(out_);
}

}  // namespace gpuprof::analysis
