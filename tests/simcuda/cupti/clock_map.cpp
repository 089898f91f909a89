// SPDX-License-Identifier: Apache-2.0
#include "tests/simcuda/cupti/clock_map.h"

#include <time.h>

#include <algorithm>

#include "tests/simcuda/core/clock.h"

namespace gpuprof::simcuda {
namespace {

constexpr int kTries = 9;
constexpr size_t kKeep = 4096;
constexpr uint64_t kMinSpacingNs = 1'000'000;  // closer pairs would make the slope noisy

}  // namespace

uint64_t ClockMap::read_source() const {
  if (source_ != nullptr) return source_();
  timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}

// Of several tries the one whose two own readings lie closest around the client's.
ClockMap::Pair ClockMap::tight_pair() const {
  Pair best{};
  uint64_t best_width = UINT64_MAX;
  for (int i = 0; i < kTries; ++i) {
    const uint64_t before = now_ns();
    const uint64_t client = read_source();
    const uint64_t after = now_ns();
    if (after - before >= best_width) continue;
    best_width = after - before;
    best = Pair{before + (after - before) / 2, client};
  }
  return best;
}

void ClockMap::set_source(CUpti_TimestampCallbackFunc source) {
  const std::lock_guard<std::mutex> lock(mutex_);
  source_ = source;
  pairs_.clear();
  pairs_.push_back(tight_pair());
}

uint64_t ClockMap::client_now() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return read_source();
}

void ClockMap::sample() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!pairs_.empty() && now_ns() - pairs_.back().monotonic < kMinSpacingNs) return;
  pairs_.push_back(tight_pair());
  if (pairs_.size() > kKeep) pairs_.erase(pairs_.begin(), pairs_.begin() + kKeep / 2);
}

uint64_t ClockMap::convert(uint64_t t) {
  const std::lock_guard<std::mutex> lock(mutex_);
  // A slope needs two pairs.
  while (pairs_.size() < 2) {
    if (!pairs_.empty()) sleep_until_ns(pairs_.back().monotonic + kMinSpacingNs);
    pairs_.push_back(tight_pair());
  }
  auto right = std::lower_bound(pairs_.begin() + 1, pairs_.end() - 1, t,
                                [](const Pair& p, uint64_t time) { return p.monotonic < time; });
  const Pair& a = *(right - 1);
  const Pair& b = *right;
  const long double slope = static_cast<long double>(b.client - a.client) /
                            static_cast<long double>(b.monotonic - a.monotonic);
  const auto distance = static_cast<long double>(static_cast<int64_t>(t - a.monotonic));
  return a.client + static_cast<uint64_t>(static_cast<int64_t>(distance * slope));
}

}  // namespace gpuprof::simcuda
