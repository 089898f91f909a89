// SPDX-License-Identifier: Apache-2.0
// What the program's own ranges (NVTX) look like on the GPU: on each stream, from the first to the
// last piece of work that was launched inside the range.
#pragma once

#include <map>
#include <vector>

#include "formats/slices.h"
#include "formats/trace.h"

namespace gpuprof {

// By stream lane, in order of begin (longer first); Slice::event is the range. Ranges that readers
// of Kineto's traces take for more than a name are left out: steps, collectives, data loaders.
std::map<LaneIndex, std::vector<Slice>> gpu_annotations(const Trace& trace, const Process& process);

// Of `annotations`, those that can be drawn on a track which already has `work` (apart, in order of
// begin): each encloses or lies beside any of it. The others come back in `crossing`.
std::vector<Slice> annotations_around(const std::vector<Slice>& annotations,
                                      const std::vector<Slice>& work, std::vector<Slice>& crossing);

// Whether a range is one that torch's DataLoader makes around fetching a batch.
bool is_data_loader(std::string_view range);

}  // namespace gpuprof
