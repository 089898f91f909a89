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
#include <iterator>
#include <sstream>
#include <string_view>
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

namespace {

// A 64-bit ELF file in memory. Everything a file says of itself is checked against its size.
class ElfBytes {
 public:
  explicit ElfBytes(const std::string& bytes) : bytes_(bytes) {
    Elf64_Ehdr header;
    if (!read(0, header) || header.e_phentsize != sizeof(Elf64_Phdr)) return;
    for (unsigned i = 0; i < header.e_phnum; ++i) {
      Elf64_Phdr segment;
      if (read(header.e_phoff + i * sizeof segment, segment)) segments_.push_back(segment);
    }
  }

  // DT_NEEDED, in order.
  std::vector<std::string> needed() const {
    std::vector<uint64_t> names;
    uint64_t strings = 0;
    for (const Elf64_Phdr& segment : segments_) {
      Elf64_Dyn entry;
      for (uint64_t at = 0; segment.p_type == PT_DYNAMIC && at < segment.p_filesz &&
                            read(segment.p_offset + at, entry) && entry.d_tag != DT_NULL;
           at += sizeof entry) {
        if (entry.d_tag == DT_NEEDED) names.push_back(entry.d_un.d_val);
        if (entry.d_tag == DT_STRTAB) strings = offset_of(entry.d_un.d_ptr);
      }
    }
    std::vector<std::string> out;
    for (const uint64_t name : names) {
      if (strings != 0 && strings + name < bytes_.size())
        out.push_back(bytes_.c_str() + strings + name);
    }
    return out;
  }

 private:
  template <typename T>
  bool read(uint64_t offset, T& out) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof out) return false;
    std::memcpy(&out, bytes_.data() + offset, sizeof out);
    return true;
  }
  // Where in the file an address lies; 0: nowhere.
  uint64_t offset_of(uint64_t address) const {
    for (const Elf64_Phdr& segment : segments_) {
      if (segment.p_type == PT_LOAD && address - segment.p_vaddr < segment.p_filesz) {
        return segment.p_offset + (address - segment.p_vaddr);
      }
    }
    return 0;
  }

  const std::string& bytes_;
  std::vector<Elf64_Phdr> segments_;
};

}  // namespace

CudaUse cuda_use_of(const std::string& path) {
  CudaUse use;
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!bytes.starts_with(ELFMAG)) return use;
  bool runtime = false;
  for (const std::string& name : ElfBytes(bytes).needed()) {
    if (name.starts_with("libcudart.so")) runtime = true;
    for (const char* library : {"libcudart.so", "libcuda.so", "libnccl.so"}) {
      if (name.starts_with(library)) use.linked.push_back(name);
    }
  }
  using namespace std::string_view_literals;
  use.own_namespaces = bytes.find("\0dlmopen\0"sv) != std::string::npos;
  // A runtime inside asks the driver for its functions by name.
  use.runtime_inside = !runtime && bytes.find("cuGetProcAddress") != std::string::npos &&
                       bytes.find("libcuda.so.1") != std::string::npos;
  return use;
}

}  // namespace gpuprof
