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

struct Kernel {
  int64_t issued;
  double us;
};
using Means = std::array<double, kQuarters>;  // us a kernel

std::map<uint32_t, std::vector<Kernel>> kernels_by_gpu(const Timeline& timeline) {
  std::map<uint32_t, std::vector<Kernel>> out;
  const int64_t begin = timeline.steps.front().begin, end = timeline.steps.back().end;
  each_work(timeline, [&](const Work& work) {
    const int64_t issued = timeline.issued_at(work);
    if (work.kind != WorkClass::compute || issued < begin || issued >= end) return;
    const auto us = static_cast<double>(work.end - work.begin) / 1000;
    out[timeline.streams[work.stream].name.device].push_back({issued, us});
  });
  return out;
}

bool run_as_many(const std::map<uint32_t, std::vector<Kernel>>& gpus) {
  std::vector<double> counts;
  for (const auto& [gpu, kernels] : gpus) counts.push_back(static_cast<double>(kernels.size()));
  const double middle = lower_median(counts);
  return middle >= kQuarters && std::all_of(counts.begin(), counts.end(), [middle](double count) {
           return std::abs(count - middle) <= kAboutAsMany * middle;
         });
}

Means means_of(std::vector<Kernel> kernels) {
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const Kernel& a, const Kernel& b) { return a.issued < b.issued; });
  Means out{};
  for (size_t i = 0; i < kQuarters; ++i) {
    const size_t first = kernels.size() * i / kQuarters, end = kernels.size() * (i + 1) / kQuarters;
    for (size_t at = first; at < end; ++at) out[i] += kernels[at].us;
    out[i] /= static_cast<double>(end - first);
  }
  return out;
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
  if (timeline.steps.size() < kLeastSteps || timeline.whole_window) return {};
  const auto gpus = kernels_by_gpu(timeline);
  if (gpus.size() < 2 || !run_as_many(gpus)) return {};
  std::vector<Means> means;
  for (const auto& [gpu, kernels] : gpus) means.push_back(means_of(kernels));
  Means middle{};
  for (size_t i = 0; i < kQuarters; ++i) {
    std::vector<double> column;
    for (const Means& row : means) column.push_back(row[i]);
    middle[i] = lower_median(column);
  }
  const double least_us = kCounts * median_step_us(timeline);
  std::vector<SlowGpu> out;
  auto row = means.begin();
  for (const auto& [gpu, kernels] : gpus) {
    const double per_step =
        static_cast<double>(kernels.size()) / static_cast<double>(timeline.steps.size());
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
