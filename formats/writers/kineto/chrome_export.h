// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "formats/writers/exporter.h"

namespace gpuprof {

// Chrome trace event JSON with Kineto's keys and categories, all processes in one file. See
// Exporter::write.
bool write_chrome(const Trace& trace, const std::string& path, const ExportOptions& options,
                  std::string& error);

}  // namespace gpuprof
