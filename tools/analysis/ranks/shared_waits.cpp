// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/ranks/shared_waits.h"

#include <algorithm>
#include <map>

namespace gpuprof::analysis {

std::vector<WaitShare> shares_of(std::span<const Wait> waits) {
  struct Edge {
    int64_t at;
    bool begins;
    const Wait* wait;
  };
  std::vector<Edge> edges;
  for (const Wait& wait : waits) {
    if (wait.time.length() <= 0) continue;
    edges.push_back({wait.time.begin, true, &wait});
    edges.push_back({wait.time.end, false, &wait});
  }
  std::stable_sort(edges.begin(), edges.end(),
                   [](const Edge& a, const Edge& b) { return a.at < b.at; });
  struct Open {
    size_t count = 0;
    double weight = 0;  // of the wait that began last
  };
  std::map<uint32_t, Open> open;  // by the rank that they are for
  std::vector<WaitShare> out;
  int64_t since = 0;
  for (const auto& [at, begins, wait] : edges) {
    for (const auto& [last, each] : open) {
      if (at == since) break;
      out.push_back({{since, at}, last, each.weight / static_cast<double>(open.size())});
    }
    since = at;
    Open& own = open[wait->last];
    if (begins) {
      ++own.count, own.weight = wait->weight;
    } else if (--own.count == 0) {
      open.erase(wait->last);
    }
  }
  return out;
}

}  // namespace gpuprof::analysis
