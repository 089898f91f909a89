// SPDX-License-Identifier: Apache-2.0
#include "tools/library_path.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>

#include "tools/console.h"

namespace gpuprof {
namespace {

namespace fs = std::filesystem;

fs::path own_folder() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path();
}

// Empty: it is in none of the places.
std::string look_beside(const char* name, int access_wanted) {
  std::error_code error;
  const fs::path folder = own_folder();
  for (const char* place : {".", "../preload", "../lib/gpuprof", "../lib"}) {
    const fs::path found = fs::canonical(folder / place / name, error);
    if (!error && ::access(found.c_str(), access_wanted) == 0) return found.string();
  }
  return "";
}

std::string find_beside(const char* name, int access_wanted) {
  const std::string found = look_beside(name, access_wanted);
  if (!found.empty()) return found;
  throw Failure(
      fmt::format("{} is not in {}, nor in ../preload, ../lib/gpuprof or ../lib "
                  "from there; build or install it",
                  name, own_folder().string()));
}

bool ends_in_preload(char c) { return c == ' ' || c == '\t' || c == '\n' || c == ':'; }

bool can_be_preloaded(const std::string& path) {
  return std::find_if(path.begin(), path.end(), ends_in_preload) == path.end();
}

// Makes a directory that nobody else may write to, or takes one that is so.
bool take_private_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return false;
  struct stat info {};
  const bool found = ::lstat(path.c_str(), &info) == 0;
  if (found && S_ISDIR(info.st_mode) && info.st_uid == ::geteuid() && (info.st_mode & 022) == 0) {
    return true;
  }
  errno = EPERM;
  return false;
}

bool links_to(const std::string& link, const std::string& target) {
  std::error_code error;
  return fs::read_symlink(link, error) == target && !error;
}

// A link in `place`, named by its target: the same one each time. Empty: errno says why not.
std::string link_below(const std::string& place, const std::string& target) {
  const std::string mine = fmt::format("{}/gpuprof-{}", place, ::geteuid());
  const std::string folder = fmt::format("{}/{:016x}", mine, std::hash<std::string>()(target));
  const std::string link = folder + "/libgpuprof.so";
  if (!take_private_folder(mine) || !take_private_folder(folder)) return "";
  if (links_to(link, target)) return link;
  const std::string fresh = fmt::format("{}.{}", link, ::getpid());
  if (::symlink(target.c_str(), fresh.c_str()) != 0) return "";
  if (::rename(fresh.c_str(), link.c_str()) == 0) return link;
  ::unlink(fresh.c_str());
  return "";
}

}  // namespace

std::string find_preloadable_library() {
  const std::string library = find_library();
  if (can_be_preloaded(library)) return library;
  const char* const wanted = std::getenv("TMPDIR");
  for (const char* place : {wanted ? wanted : "/tmp", "/tmp", "/var/tmp", "/dev/shm"}) {
    if (place[0] != '/' || !can_be_preloaded(place)) continue;
    const std::string link = link_below(place, library);
    if (!link.empty()) return link;
  }
  throw Failure(fmt::format(
      "{}: LD_PRELOAD cannot name a path with a blank or a colon, and no link to it can "
      "be made in /tmp ({}); move it, or set TMPDIR to a directory of yours",
      library, std::strerror(errno)));
}

std::string find_library() { return find_beside("libgpuprof.so", R_OK); }

bool is_our_library(const std::string& path) {
  const std::string library = look_beside("libgpuprof.so", R_OK);
  std::error_code error;
  return !library.empty() && fs::equivalent(path, library, error) && !error;
}

std::string find_tool_beside(const char* name) { return look_beside(name, X_OK); }

std::string find_probe() { return find_beside("gpuprof-probe", X_OK); }

}  // namespace gpuprof
