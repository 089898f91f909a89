// SPDX-License-Identifier: Apache-2.0
// What recording costs the program's threads, as far as records tell. One unit is the measured cost
// of one call's record (measure_hook_cost): two readings of the clock and the record.
#pragma once

#include <array>
#include <cstdint>

#include "formats/core/record.h"
#include "formats/core/shed.h"

namespace gpuprof {

// Units that making this record takes. The weights are those of docs/MEASURED.md ("What a call and
// a record cost", "Cost of operators"): an operator's has PyTorch's own work for an observer in it,
// a layer's the Python of its hooks. 0: of no thread of the program's.
constexpr uint64_t record_units(const Record& record) {
  switch (record.kind) {
    case Kind::stack:
    case Kind::sample: return 0;
    case Kind::op: return record.framework.input_dims ? 20 : 10;
    case Kind::annotation: return 10;
    case Kind::module: return 150;
    case Kind::nvtx_range: return 3;
    case Kind::nvtx_mark: return 2;
    default: return is_gpu_kind(record.kind) ? 0 : 1;
  }
}

// In ns, by kind, of some stretch of a window.
using KindCosts = std::array<double, kShedKinds>;
double sum_of(const KindCosts& costs);

// Sums of a window's records, by kind. Of ShedKind::none: what is never shed.
struct RecordCosts {
  std::array<uint64_t, kShedKinds> records{};
  std::array<uint64_t, kShedKinds> units{};
  std::array<uint64_t, kShedKinds> ticks{};  // that were measured: stacks, CUPTI's buffers
  uint64_t buffer_ticks = 0;                 // fresh buffers, which all kinds need

  // `stack_of`: of a stack's record the record after it, which it is of; else not used.
  void add(const Record& record, const Record& stack_of);
  // What came since `before`. `lost`: records for which there was no buffer then, of unknown kind:
  // as those that there are. Fresh buffers are shared out by records.
  KindCosts since(const RecordCosts& before, uint64_t lost, double ns_per_unit,
                  double ticks_per_ns) const;
};

// What to shed besides what is `shed` already (a bit per ShedKind), for `costs` of `elapsed_ns` to
// come to `percent` of it at most. The costliest kind goes first, waits only after all others. A
// kind that takes less than a twentieth of the budget stays: what stays so is a fifth at most. 0:
// nothing. A pure function.
uint32_t choose_shed(const KindCosts& costs, double elapsed_ns, double percent, uint32_t shed);

}  // namespace gpuprof
