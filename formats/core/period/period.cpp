// SPDX-License-Identifier: Apache-2.0
#include "formats/core/period/period.h"

#include <utility>

#include "formats/core/period/choice.h"
#include "formats/core/period/pieces.h"

namespace gpuprof {
namespace {

constexpr double kExplained =
    0.9;  // of the launches: less, and steps may have changed their length

double share_of_stream(const Period& period, size_t count) {
  return static_cast<double>(period.begins.size()) * period.length / static_cast<double>(count);
}

}  // namespace

bool find_period(const uint32_t* kernels, size_t count, Period& out) {
  out = Period{};
  PeriodLevels levels;
  bool ok = levels.find(kernels, count) && choose_period(levels, kernels, out);
  if (ok && share_of_stream(out, count) < kExplained) {
    Period changing;
    bool changes = false;
    ok = find_period_in_pieces(kernels, count, changing, changes);
    if (changing.confidence > 0 && (changes || out.confidence == 0)) out = std::move(changing);
  }
  if (!ok) out = Period{};
  return ok;
}

}  // namespace gpuprof
