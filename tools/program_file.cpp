// SPDX-License-Identifier: Apache-2.0
#include "tools/program_file.h"

#include <elf.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

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

std::string why_not_elf(std::ifstream& file, const std::string& path) {
  Elf64_Ehdr header{};
  file.seekg(0);
  if (!file.read(reinterpret_cast<char*>(&header), sizeof(header))) return "";
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64) {
    return "it is not a 64-bit x86 program";
  }
  if (header.e_phentsize != sizeof(Elf64_Phdr) || is_dynamic_loader(path)) return "";
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  file.seekg(static_cast<std::streamoff>(header.e_phoff));
  file.read(reinterpret_cast<char*>(segments.data()),
            static_cast<std::streamsize>(segments.size() * sizeof(Elf64_Phdr)));
  if (!file) return "";
  const bool dynamic = std::any_of(segments.begin(), segments.end(),
                                   [](const Elf64_Phdr& s) { return s.p_type == PT_INTERP; });
  return dynamic ? "" : "it is linked statically";
}

// The kernel drops LD_PRELOAD where a program gains rights by being started.
std::string why_not_rights(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return "";
  if ((status.st_mode & S_ISUID) != 0 && status.st_uid != geteuid()) return "it is setuid";
  if ((status.st_mode & S_ISGID) != 0 && status.st_gid != getegid()) return "it is setgid";
  if (geteuid() != 0 && getxattr(path.c_str(), "security.capability", nullptr, 0) > 0) {
    return "it has file capabilities";
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
  std::ifstream file(path, std::ios::binary);
  char magic[SELFMAG] = {};
  if (!file.read(magic, SELFMAG)) return "";
  if (std::memcmp(magic, ELFMAG, SELFMAG) == 0) return why_not_elf(file, path);
  if (magic[0] != '#' || magic[1] != '!') return "";
  file.seekg(2);
  std::string line, interpreter;
  std::getline(file, line);
  std::istringstream(line) >> interpreter;
  std::ifstream binary(interpreter, std::ios::binary);
  if (!binary.read(magic, SELFMAG) || std::memcmp(magic, ELFMAG, SELFMAG) != 0) return "";
  return why_not_elf(binary, interpreter);
}

}  // namespace gpuprof
