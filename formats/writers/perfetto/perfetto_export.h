// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "formats/writers/exporter.h"

namespace gpuprof {

// Perfetto's native trace format. See Exporter::write.
bool write_perfetto(const Trace& trace, const std::string& path, const ExportOptions& options,
                    std::string& error);

// A file for each rank, `<host>_r<rank>.pftrace`, with all its windows and the workers of its
// DataLoaders. Of processes without a rank `<host>_<pid>.pftrace`.
bool write_perfetto_ranks(const Trace& trace, const std::string& path, const ExportOptions& options,
                          std::string& error);

}  // namespace gpuprof
