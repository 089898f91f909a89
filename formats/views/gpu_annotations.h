// SPDX-License-Identifier: Apache-2.0
// The program's own ranges (NVTX) on the GPU: on each stream, from the first to the last work that
// was launched inside the range.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "formats/trace/trace.h"
#include "formats/views/slices.h"

namespace gpuprof {

// By stream lane, in order of begin (longer first); Slice::event is the range.
// Ranges that readers of Kineto's traces take for more than a name are left
// out: steps, collectives, data loaders.
std::map<LaneIndex, std::vector<Slice>> gpu_annotations(const Trace& trace, const Process& process);

// Which of the annotations begin or end inside a piece of work, not at an edge
// of it. `work` calls its argument with each slice of the row, in order; they
// follow each other.
std::vector<bool> crossing_work(
    const std::vector<Slice>& annotations,
    const std::function<void(const std::function<void(const Slice&)>&)>& work);

// Of the annotations, in order, those that fit on the row of the work; the
// others go to `crossing`, in order.
std::vector<Slice> annotations_around(const std::vector<Slice>& annotations,
                                      const std::vector<bool>& cut, std::vector<Slice>& crossing);

// Whether a range is one that torch's DataLoader makes around fetching a batch.
bool names_torch_data_loader(std::string_view range);

}  // namespace gpuprof
