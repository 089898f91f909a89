// SPDX-License-Identifier: Apache-2.0
#include "formats/writers/kineto/chrome_export.h"

#include "formats/writers/kineto/kineto_json.h"

namespace gpuprof {

bool write_chrome(const Trace& trace, const std::string& path, const ExportOptions& options,
                  std::string& error) {
  OutputFile file(path, options.compression, options.links);
  std::vector<const Process*> processes;
  for (const Process& process : trace.processes) processes.push_back(&process);
  ExportProgress progress(trace, options);
  if (file.ok()) write_kineto_json(trace, processes, path, file, progress);
  if (file.commit()) return true;
  error = file.error();
  return false;
}

}  // namespace gpuprof
