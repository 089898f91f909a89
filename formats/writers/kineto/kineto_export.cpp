// SPDX-License-Identifier: Apache-2.0
#include "formats/writers/kineto/kineto_export.h"

#include <fmt/format.h>

#include <set>

#include "formats/io/output_folder.h"
#include "formats/views/kineto_ids.h"
#include "formats/writers/kineto/kineto_json.h"

namespace gpuprof {
namespace {

// As PyTorch's handler for TensorBoard names them: worker, then time. '.' ends the worker's name.
// Where containers share their host's name and have the same pids, the second one's host has its
// number.
std::string name_of(const Process& process, std::set<std::string>& workers) {
  std::string host = file_name_part(process.header.host());
  for (char& c : host) {
    if (c == '.') c = '-';
  }
  std::string worker = fmt::format("{}_{}", host, process.header.pid());
  for (int container = 2; !workers.insert(worker).second; ++container) {
    worker = fmt::format("{}-{}_{}", host, container, process.header.pid());
  }
  return fmt::format("{}.{}.pt.trace.json.gz", worker, std::max<int64_t>(process.window_begin, 0));
}

bool write_one(const Trace& trace, const std::vector<const Process*>& windows,
               const std::string& path, Compression compression, Links links,
               ExportProgress& progress, std::string& error,
               KinetoSpelling spelling = KinetoSpelling::current) {
  OutputFile file(path, compression, links);
  if (file.ok()) write_kineto_json(trace, windows, path, file, progress, spelling);
  if (file.commit()) return true;
  error = file.error();
  return false;
}

}  // namespace

bool write_kineto(const Trace& trace, const std::string& path, const ExportOptions& options,
                  std::string& error) {
  const auto processes = by_process(trace);
  ExportProgress progress(trace, options);
  const bool plain = path.ends_with(".json"), packed = path.ends_with(".json.gz");
  if (plain || packed) {
    if (processes.size() == 1) {
      return write_one(trace, processes[0], path, plain ? Compression::none : Compression::gzip,
                       options.links, progress, error);
    }
    if (processes.empty()) {
      error = fmt::format(
          "{}: the input has workers of a DataLoader alone; name the dump of their "
          "process, too",
          path);
      return false;
    }
    error = fmt::format("{}: names one file, and there are {} processes; give a directory", path,
                        processes.size());
    return false;
  }
  return write_kineto_folder(trace, path, options, KinetoSpelling::current, error);
}

bool write_kineto_folder(const Trace& trace, const std::string& path, const ExportOptions& options,
                         KinetoSpelling spelling, std::string& error) {
  const auto processes = by_process(trace);
  ExportProgress progress(trace, options);
  if (!make_folder(path, error, options.links)) return false;
  std::set<std::string> workers;
  for (const auto& windows : processes) {
    const std::string file = path + "/" + name_of(*windows.front(), workers);
    if (!write_one(trace, windows, file, Compression::gzip, Links::replaced, progress, error,
                   spelling))
      return false;
  }
  return true;
}

}  // namespace gpuprof
