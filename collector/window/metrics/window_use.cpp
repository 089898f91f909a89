// SPDX-License-Identifier: Apache-2.0
#include "collector/window/metrics/window_use.h"

#include <algorithm>

#include "formats/core/names.h"

namespace gpuprof {
namespace {

constexpr size_t kMostStretches = 1u << 19;  // 8 MiB

uint16_t device_of(const Record& record) {
  switch (record.kind) {
    case Kind::gpu_kernel:
    case Kind::gpu_graph: return record.gpu_kernel.device;
    default: return record.gpu_copy.device;
  }
}

}  // namespace

void CoveredTime::clear() {
  stretches_.clear();
  settled_ = settled_until_ = 0;
}

void CoveredTime::add(uint64_t begin, uint64_t end) {
  begin = std::max(begin, settled_until_);
  if (begin >= end) return;
  if (stretches_.size() > 0) {
    Stretch& last = stretches_[stretches_.size() - 1];
    if (begin >= last.begin && begin <= last.end) {
      last.end = std::max(last.end, end);
      return;
    }
  }
  if (stretches_.size() >= kMostStretches) {
    merge();
    if (stretches_.size() > kMostStretches / 2) {
      const size_t half = stretches_.size() / 2;
      for (size_t i = 0; i < half; ++i) settled_ += stretches_[i].end - stretches_[i].begin;
      settled_until_ = stretches_[half - 1].end;
      std::copy(stretches_.begin() + half, stretches_.end(), stretches_.begin());
      stretches_.truncate(stretches_.size() - half);
      begin = std::max(begin, settled_until_);
      if (begin >= end) return;
    }
  }
  (void)stretches_.push_back({begin, end});
}

// Sorted, and none touches another.
void CoveredTime::merge() {
  std::sort(stretches_.begin(), stretches_.end(),
            [](const Stretch& a, const Stretch& b) { return a.begin < b.begin; });
  size_t kept = 0;
  for (const Stretch& each : stretches_) {
    if (kept > 0 && each.begin <= stretches_[kept - 1].end) {
      stretches_[kept - 1].end = std::max(stretches_[kept - 1].end, each.end);
    } else {
      stretches_[kept++] = each;
    }
  }
  stretches_.truncate(kept);
}

uint64_t CoveredTime::total(uint64_t begin, uint64_t end) {
  merge();
  uint64_t sum = settled_;
  for (const Stretch& each : stretches_) {
    const uint64_t from = std::max(each.begin, begin), to = std::min(each.end, end);
    if (from < to) sum += to - from;
  }
  return sum;
}

void WindowUse::begin() {
  for (Gpu& gpu : gpus_) {
    gpu.worked = gpu.graphs = false;
    gpu.all.clear();
    gpu.computing.clear();
  }
  loads_data_ = false;
  data_.clear();
}

void WindowUse::add(const Record& record, std::string_view name) {
  if (record.kind == Kind::annotation) {
    if (!names_data_loading(name)) return;
    loads_data_ = true;
    return data_.add(record.begin, record.end);
  }
  if (!is_stream_work(record.kind) || (record.flags & kFlagNoTime)) return;
  const uint16_t device = device_of(record);
  if (device >= kMostGpus) return;
  Gpu& gpu = gpus_[device];
  gpu.worked = true;
  gpu.graphs |= record.kind == Kind::gpu_graph;
  gpu.all.add(record.begin, record.end);
  const bool communicates = record.kind == Kind::gpu_kernel && names_communication(name);
  if (!communicates) gpu.computing.add(record.begin, record.end);
}

}  // namespace gpuprof
