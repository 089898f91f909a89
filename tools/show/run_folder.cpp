// SPDX-License-Identifier: Apache-2.0
#include "tools/show/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <string_view>

#include "formats/core/runs/run_files.h"

namespace gpuprof {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kStartSlackNs = 2 * kSecondNs;  // the kernel counts starts in ticks since boot

// Whether a session that `wanted` takes began in this folder since then.
bool has_session(const fs::path& folder, int64_t started_ns,
                 const std::function<bool(const RunFile&)>& wanted) {
  std::error_code failed;
  fs::directory_iterator at(folder, failed), none;
  for (; !failed && at != none; at.increment(failed)) {
    RunFile file;
    const std::string name = at->path().filename().string();
    if (parse_run_file(name, file) && file.kind != RunFileKind::control &&
        file.begun_ns >= static_cast<uint64_t>(started_ns) && wanted(file)) {
      return true;
    }
  }
  return false;
}

// Each process of a run has a shared lock on its folder until it ends.
bool is_in_use(const fs::path& folder) {
  const int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return false;
  const bool busy = ::flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(file);
  return busy;
}

// Whether the folder is named after a process that was there before the program.
bool is_of_an_older_one(const std::string& name, const EndedProgram& program) {
  char first[kUtcStartBytes];
  format_utc_start(static_cast<time_t>((program.started_ns - kStartSlackNs) / kSecondNs), first);
  return parent_of_started_run(name) != 0 &&
         std::string_view(name).substr(0, sizeof first - 1) < first;
}

std::vector<std::string> folders_of(const std::string& output) {
  std::vector<std::string> names;
  std::error_code failed;
  fs::directory_iterator at(output, failed), none;
  for (; !failed && at != none; at.increment(failed)) {
    std::error_code ignored;
    if (at->is_symlink(ignored) || !at->is_directory(ignored)) continue;
    names.push_back(at->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

RunFolder find_run_folder(const std::string& output, const std::string& named, bool only_named,
                          const EndedProgram& program) {
  const auto path_of = [&](const std::string& name) { return output + "/" + name; };
  const auto has_new = [&](const std::string& name) {
    return has_session(path_of(name), program.started_ns, [](const RunFile&) { return true; });
  };
  if (!named.empty() && has_new(named)) return {path_of(named), true, {}};
  if (only_named) return {};
  const std::vector<std::string> names = folders_of(output);
  for (const uint32_t parent : {program.starter, program.pid}) {
    for (const std::string& name : names) {
      if (parent_of_started_run(name) == parent && has_new(name)) return {path_of(name), true, {}};
    }
  }
  RunFolder out;
  for (const std::string& name : names) {
    if (!has_new(name)) continue;
    const auto is_its_own = [&](const RunFile& file) { return file.pid == program.pid; };
    if (has_session(path_of(name), program.started_ns, is_its_own)) {
      return {path_of(name), true, {}};
    }
    if (!is_in_use(path_of(name)) && !is_of_an_older_one(name, program)) {
      out.others.push_back(path_of(name));
    }
  }
  if (out.others.size() == 1) {
    out.path = out.others[0];
    out.others.clear();
  }
  return out;
}

bool has_ring_since(const std::string& folder, int64_t started_ns, uint32_t pid) {
  return has_session(folder, started_ns, [pid](const RunFile& file) {
    return file.kind == RunFileKind::ring && (pid == 0 || file.pid == pid);
  });
}

}  // namespace gpuprof
