// SPDX-License-Identifier: Apache-2.0
// Losses that a record tells of by itself. They are counted where the record is put into a dump,
// since what CUPTI hands over at its end may be work of after the window, half done.
#pragma once

#include "formats/core/record.h"
#include "formats/core/ring_file.h"

namespace gpuprof {

// Calls `count(Loss)` for each.
template <typename Count>
void count_losses_of(const Record& record, Count count) {
  if (!is_stream_work(record.kind)) return;
  if (record.flags & kFlagNoTime) count(Loss::bad_timestamp);
  if (record.correlation == 0) count(Loss::gpu_unjoined);
}

}  // namespace gpuprof
