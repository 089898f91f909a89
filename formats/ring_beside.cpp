// SPDX-License-Identifier: Apache-2.0
#include "formats/ring_beside.h"

#include <string>
#include <vector>

#include "formats/core/early_window.h"
#include "formats/dump/ring_reader.h"
#include "formats/io/file_bytes.h"

namespace gpuprof {

std::optional<uint64_t> boundaries_beside(const Process& process) {
  // As the collector names them: NAME_w0.gpuprof, NAME_early0.gpuprof, NAME.gpuprof.ring.
  const bool early = is_early_window(process.header.window());
  const size_t end = process.path.rfind(early ? "_early" : "_w");
  if (end == std::string::npos) return std::nullopt;
  const std::string path = process.path.substr(0, end) + ".gpuprof.ring";
  std::string bytes, reason;
  std::vector<Problem> problems;
  if (!read_file(path, bytes, reason)) return std::nullopt;
  const RingReader reader(bytes, path, problems);
  if (!reader.ok()) return std::nullopt;
  return reader.info().boundaries;
}

}  // namespace gpuprof
