// SPDX-License-Identifier: Apache-2.0
#include "tools/older_files.h"

#include <sys/stat.h>

#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace gpuprof {
namespace {

namespace fs = std::filesystem;

// How the names of a format's traces end; empty: no trace.
std::string_view end_of(const fs::path& path) {
  const std::string name = path.filename().string();
  for (const std::string_view end : {".pt.trace.json.gz", ".xplane.pb", ".pftrace"}) {
    if (name.ends_with(end)) return end;
  }
  return {};
}

// What a viewer reads as one.
std::pair<fs::path, std::string_view> place_of(const fs::path& path) {
  return {path.parent_path(), end_of(path)};
}

}  // namespace

OlderFiles::Files OlderFiles::look() const {
  Files found;
  std::error_code error;
  fs::recursive_directory_iterator at(folder_, fs::directory_options::skip_permission_denied,
                                      error);
  for (const fs::recursive_directory_iterator end; !error && at != end; at.increment(error)) {
    struct stat status = {};
    if (end_of(at->path()).empty() || ::lstat(at->path().c_str(), &status) != 0) continue;
    if (S_ISREG(status.st_mode)) found[at->path()] = status.st_ino;
  }
  return found;
}

std::vector<fs::path> OlderFiles::beside_new_ones() const {
  std::vector<fs::path> out;
  if (before_.empty()) return out;
  const Files now = look();
  std::set<std::pair<fs::path, std::string_view>> written;
  const auto is_old = [&](const Files::value_type& file) {
    const auto before = before_.find(file.first);
    return before != before_.end() && before->second == file.second;
  };
  for (const auto& file : now) {
    if (!is_old(file)) written.insert(place_of(file.first));
  }
  for (const auto& file : now) {
    if (is_old(file) && written.contains(place_of(file.first))) out.push_back(file.first);
  }
  return out;
}

}  // namespace gpuprof
