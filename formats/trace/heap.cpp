// SPDX-License-Identifier: Apache-2.0
#include "formats/trace/heap.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace gpuprof {
namespace {

// Calls `given(sample)` and `released(allocation, sample)`, in order of time; releases of what was
// allocated before the window are left out.
template <typename Given, typename Released>
void walk(const Process& process, const Given& given, const Released& released) {
  std::unordered_map<uint64_t, const HeapSample*> live;
  for (const HeapSample& sample : process.heap) {
    const auto at = live.find(sample.address);
    if (at != live.end()) {  // also where its address is given anew: its release was not seen
      released(*at->second, sample);
      live.erase(at);
    }
    if (sample.released) continue;
    live.emplace(sample.address, &sample);
    given(sample);
  }
}

}  // namespace

double heap_weight(uint64_t bytes, uint64_t interval) {
  if (bytes == 0 || interval == 0) return static_cast<double>(bytes);
  const double size = static_cast<double>(bytes);
  return size / -std::expm1(-size / static_cast<double>(interval));
}

int64_t whole_number(double sum) {
  constexpr double kMost = static_cast<double>(int64_t{1} << 60);
  return std::llround(std::clamp(sum, -kMost, kMost));
}

std::vector<HeapSite> heap_sites(const Process& process) {
  std::unordered_map<uint32_t, HeapSite> sites;
  const auto add = [&](const HeapSample& of, double sign, bool allocated) {
    HeapSite& site = sites[static_cast<uint32_t>(of.stack)];
    site.stack = of.stack;
    const double weight = heap_weight(of.bytes, of.interval);
    const double count = of.bytes ? weight / static_cast<double>(of.bytes) : 1;
    site.held_bytes += sign * weight;
    site.held_count += sign * count;
    if (!allocated) return;
    ++site.samples;
    site.bytes += weight;
    site.count += count;
  };
  walk(
      process, [&](const HeapSample& sample) { add(sample, 1, true); },
      [&](const HeapSample& allocation, const HeapSample&) { add(allocation, -1, false); });
  std::vector<HeapSite> out;
  for (const auto& [stack, site] : sites) out.push_back(site);
  std::sort(out.begin(), out.end(), [](const HeapSite& a, const HeapSite& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.stack < b.stack;
  });
  return out;
}

std::vector<HeapPoint> heap_curve(const Process& process) {
  std::vector<HeapPoint> out;
  double held = 0;
  const auto point = [&](int64_t time, double change) {
    held += change;
    out.push_back({time, held});
  };
  walk(
      process,
      [&](const HeapSample& sample) {
        point(sample.time, heap_weight(sample.bytes, sample.interval));
      },
      [&](const HeapSample& allocation, const HeapSample& release) {
        point(release.time, -heap_weight(allocation.bytes, allocation.interval));
      });
  return out;
}

}  // namespace gpuprof
