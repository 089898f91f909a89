// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "formats/writers/exporter.h"

namespace gpuprof {

// XProf's planes: <host>_r<rank>.xplane.pb for each process in the directory `path`, which XProf
// wants to be called <log directory>/plugins/profile/<run>. See Exporter::write.
bool write_xplane(const Trace& trace, const std::string& path, const ExportOptions& options,
                  std::string& error);

// A log directory that TensorBoard's plugins open, both: <run>/ with torch.profiler traces for
// torch-tb-profiler, and plugins/profile/<run>/ for XProf. A run is named by the time it began at.
bool write_tensorboard(const Trace& trace, const std::string& path, const ExportOptions& options,
                       std::string& error);

}  // namespace gpuprof
