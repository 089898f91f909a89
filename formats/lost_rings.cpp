// SPDX-License-Identifier: Apache-2.0
#include "formats/lost_rings.h"

#include <fmt/format.h>

#include <filesystem>

namespace gpuprof {
namespace {

namespace fs = std::filesystem;

// A file's name begins with it: <host>_r<rank>_<pid>_<begun>. The name itself, if it does not.
std::string host_of(const fs::path& link) {
  const std::string name = link.filename().string();
  return name.substr(0, name.rfind("_r"));
}

}  // namespace

bool is_lost_ring(const std::string& path) {
  std::error_code error;
  return path.ends_with(".gpuprof.ring") && fs::is_symlink(fs::symlink_status(path, error)) &&
         fs::status(path, error).type() == fs::file_type::not_found;
}

Problem describe_lost_rings(const std::vector<std::string>& links) {
  const std::string& link = links.at(0);
  std::error_code error;
  std::string target = fs::read_symlink(link, error).string();
  if (error) target = "another folder";
  const size_t more = links.size() - 1;
  return {link, 0,
          fmt::format("leads to {}, which is not on this machine: the live buffers of a process on "
                      "{}, or lost with its container or job{}. What no dump has is only there",
                      target, host_of(link),
                      more == 0 ? ""
                                : fmt::format("; so are those of {} more process{}", more,
                                              more == 1 ? "" : "es"))};
}

}  // namespace gpuprof
