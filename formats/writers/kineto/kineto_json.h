// SPDX-License-Identifier: Apache-2.0
// One trace event JSON document as Kineto (torch.profiler) writes them: its
// keys, categories, units and row numbers, so that what reads Kineto's traces
// reads ours.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "formats/io/file_bytes.h"
#include "formats/trace/trace.h"
#include "formats/writers/exporter.h"

namespace gpuprof {

// How categories are spelt. torch-tb-profiler 0.4, the last one released, knows
// no `cuda_runtime` and no `cuda_driver`: it links kernels to operators through
// `Runtime`, as traces before PyTorch 1.12 spell it.
enum class KinetoSpelling { current, tensorboard };

// Writes `processes` of `trace`. Of one process (in any number of windows) the
// document has its rank, and its own process and device numbers; of several,
// numbers are made unique. Times count from a base that is the same for all
// documents of the trace. `title`: its `traceName`.
void write_kineto_json(const Trace& trace, std::span<const Process* const> processes,
                       const std::string& title, OutputFile& file, ExportProgress& progress,
                       KinetoSpelling spelling = KinetoSpelling::current);

}  // namespace gpuprof
