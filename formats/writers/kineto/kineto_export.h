// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "formats/writers/exporter.h"
#include "formats/writers/kineto/kineto_json.h"

namespace gpuprof {

// A torch.profiler trace for each process: <host>_<pid>.<ns>.pt.trace.json.gz in the directory
// `path`. Where `path` ends in .json or .json.gz and there is one process, that file. See
// Exporter::write.
bool write_kineto(const Trace& trace, const std::string& path, const ExportOptions& options,
                  std::string& error);

// The directory alone, spelt for one reader.
bool write_kineto_folder(const Trace& trace, const std::string& path, const ExportOptions& options,
                         KinetoSpelling spelling, std::string& error);

}  // namespace gpuprof
