// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/ranks/slow_gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "tools/analysis/statistics.h"
#include "tools/analysis/walks.h"
#include "tools/console.h"

namespace gpuprof::analysis {
namespace {

constexpr size_t kQuarters = 4;
constexpr size_t kLeastSteps = 4;
constexpr double kAboutAsMany = 0.25;  // kernels, of the median GPU's
constexpr double kCounts = 0.01;       // of a step

using Means = std::array<double, kQuarters>;  // us a kernel

// Kernels whose calls lie in the steps.
class KernelsOfSteps {
 public:
  explicit KernelsOfSteps(const Timeline& timeline)
      : timeline_(timeline),
        begin_(timeline.steps.front().begin),
        end_(timeline.steps.back().end) {}

  std::map<uint32_t, size_t> count_by_gpu() const {
    std::map<uint32_t, size_t> out;
    each_work(timeline_, [&](const Work& work) {
      if (holds(work)) ++out[gpu_of(work.stream)];
    });
    return out;
  }

  // Of the quarters of the `count` kernels of one GPU, in the order in which they ran. Keeps none
  // of them: a window can have millions.
  Means means_of(uint32_t gpu, size_t count) const {
    MergedWalk<StreamWalk> walk;
    for (uint32_t i = 0; i < timeline_.streams.size(); ++i) {
      if (gpu_of(i) == gpu) walk.add(StreamWalk(timeline_, i));
    }
    walk.begin();
    Means out{};
    size_t quarter = 0;
    for (size_t at = 0; !walk.at_end(); ++walk) {
      if (!holds(*walk)) continue;
      while (at >= count * (quarter + 1) / kQuarters) ++quarter;
      out[quarter] += static_cast<double>(walk->end - walk->begin) / 1000;
      ++at;
    }
    for (size_t i = 0; i < kQuarters; ++i) {
      out[i] /= static_cast<double>(count * (i + 1) / kQuarters - count * i / kQuarters);
    }
    return out;
  }

 private:
  uint32_t gpu_of(uint32_t stream) const { return timeline_.streams[stream].name.device; }
  bool holds(const Work& work) const {
    if (work.kind != WorkClass::compute) return false;
    const int64_t issued = timeline_.issued_at(work);
    return issued >= begin_ && issued < end_;
  }

  const Timeline& timeline_;
  const int64_t begin_, end_;
};

bool run_as_many(const std::map<uint32_t, size_t>& kernels) {
  std::vector<double> counts;
  for (const auto& [gpu, count] : kernels) counts.push_back(static_cast<double>(count));
  const double middle = lower_median(counts);
  return middle >= 2 * kQuarters &&
         std::all_of(counts.begin(), counts.end(), [middle](double count) {
           return std::abs(count - middle) <= kAboutAsMany * middle;
         });
}

bool has_several_gpus(const Timeline& timeline) {
  const std::vector<Stream>& streams = timeline.streams;
  return std::any_of(streams.begin(), streams.end(), [&](const Stream& stream) {
    return stream.name.device != streams.front().name.device;
  });
}

double median_step_us(const Timeline& timeline) {
  std::vector<double> lengths;
  for (const Step& step : timeline.steps) {
    lengths.push_back(static_cast<double>(step.end - step.begin) / 1000);
  }
  return quantile(lengths, 0.5);
}

}  // namespace

std::vector<SlowGpu> find_slow_gpus(const Timeline& timeline) {
  if (timeline.steps.size() < kLeastSteps || timeline.whole_window || !has_several_gpus(timeline)) {
    return {};
  }
  const KernelsOfSteps kernels(timeline);
  const std::map<uint32_t, size_t> gpus = kernels.count_by_gpu();
  if (gpus.size() < 2 || !run_as_many(gpus)) return {};
  std::vector<Means> means;
  for (const auto& [gpu, count] : gpus) means.push_back(kernels.means_of(gpu, count));
  Means middle{};
  for (size_t i = 0; i < kQuarters; ++i) {
    std::vector<double> column;
    for (const Means& row : means) column.push_back(row[i]);
    middle[i] = lower_median(column);
  }
  const double least_us = kCounts * median_step_us(timeline);
  std::vector<SlowGpu> out;
  auto row = means.begin();
  for (const auto& [gpu, count] : gpus) {
    const double per_step = static_cast<double>(count) / static_cast<double>(timeline.steps.size());
    double excess = std::numeric_limits<double>::max();
    std::vector<double> factors;
    for (size_t i = 0; i < kQuarters; ++i) {
      excess = std::min(excess, ((*row)[i] - middle[i]) * per_step);
      if (middle[i] > 0) factors.push_back((*row)[i] / middle[i]);
    }
    ++row;
    if (excess <= least_us || factors.empty()) continue;
    out.push_back(
        {timeline.process->header.rank(), gpu, gpus.size(), quantile(factors, 0.5), excess});
  }
  return out;
}

std::string describe(const SlowGpu& slow) {
  const std::string who = slow.rank < 0 ? "the process" : fmt::format("rank {}", slow.rank);
  return fmt::format(
      "{}, whose {} GPUs run about as many kernels: those of GPU {} take {:.2f} x as long as the "
      "median GPU's, {} more a "
      "step",
      who, slow.gpus, slow.gpu, slow.factor, format_us(slow.excess_us));
}

}  // namespace gpuprof::analysis
