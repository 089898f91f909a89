// SPDX-License-Identifier: Apache-2.0
#include "tools/program_file.h"

#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include "tools/symbols/elf_file.h"

namespace gpuprof {
namespace {

bool is_executable_file(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         access(path.c_str(), X_OK) == 0;
}

// ld-linux-x86-64.so.2 has no interpreter itself, yet preloads into the program it is given.
bool is_dynamic_loader(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  return name.starts_with("ld-linux") || name.starts_with("ld.so") || name.starts_with("ld-2.");
}

std::string why_not_elf(const ElfFile& file) {
  if (!file.is_for_this_machine())
    return "it is built for another kind of machine than this library";
  if (is_dynamic_loader(file.path())) return "";
  const std::string interpreter = file.interpreter();
  if (interpreter.empty()) return "it is linked statically, so no library can be preloaded into it";
  const bool musl = interpreter.find("/ld-musl-") != std::string::npos;
  return musl ? "it uses musl; gpuprof works with glibc only" : "";
}

// The kernel drops LD_PRELOAD where a program gains rights by being started.
std::string why_not_rights(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return "";
  if ((status.st_mode & S_ISUID) != 0 && status.st_uid != geteuid())
    return "it is setuid, so the dynamic linker leaves LD_PRELOAD out";
  if ((status.st_mode & S_ISGID) != 0 && status.st_gid != getegid())
    return "it is setgid, so the dynamic linker leaves LD_PRELOAD out";
  if (geteuid() != 0 && getxattr(path.c_str(), "security.capability", nullptr, 0) > 0) {
    return "it has file capabilities, so the dynamic linker leaves LD_PRELOAD out";
  }
  return "";
}

}  // namespace

std::string find_program(const std::string& command) {
  if (command.find('/') != std::string::npos) return command;
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/bin:/usr/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string file = (folder.empty() ? "." : folder) + "/" + command;
    if (is_executable_file(file)) return file;
  }
  return "";
}

std::string why_not_preloadable(const std::string& path) {
  const std::string rights = why_not_rights(path);
  if (!rights.empty()) return rights;
  if (const ElfFile file(path); file.ok()) return why_not_elf(file);
  std::ifstream script(path, std::ios::binary);
  std::string interpreter;
  char head[256] = {};  // the kernel reads no more of the first line
  script.read(head, sizeof head - 1);
  if (std::string_view(head).substr(0, 2) != "#!") return "";
  std::istringstream(std::string(head + 2)) >> interpreter;
  const ElfFile file(interpreter);
  return file.ok() ? why_not_elf(file) : "";
}

CudaUse cuda_use_of(const std::string& path) {
  CudaUse use;
  const ElfFile file(path);
  bool runtime = false;
  for (const std::string& name : file.needed()) {
    if (name.starts_with("libcudart.so")) runtime = true;
    for (const char* library : {"libcudart.so", "libcuda.so", "libnccl.so"}) {
      if (name.starts_with(library)) use.linked.push_back(name);
    }
  }
  using namespace std::string_view_literals;
  const auto has = [&](std::string_view text) {
    return file.bytes().find(text) != std::string_view::npos;
  };
  use.own_namespaces = has("\0dlmopen\0"sv);
  // A runtime inside asks the driver for its functions by name.
  use.runtime_inside = !runtime && has("cuGetProcAddress") && has("libcuda.so.1");
  return use;
}

}  // namespace gpuprof
