// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "formats/writers/exporter.h"

namespace gpuprof {

// Flame graphs for speedscope.app: for each process, GPU time by what launched it (ranges,
// operators, native stack, call, kernel), and the time for which a GPU had nothing to do before it.
// See Exporter::write.
bool write_speedscope(const Trace& trace, const std::string& path, const ExportOptions& options,
                      std::string& error);

}  // namespace gpuprof
