// SPDX-License-Identifier: Apache-2.0
// One ELF file with code or with the debug info of one, opened for symbols. Not thread-safe.
#pragma once

#include <elfutils/libdw.h>
#include <libelf.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gpuprof {

class ElfFile {
 public:
  // Null (ok() false) where the path is no ELF file that can be read.
  explicit ElfFile(const std::string& path);
  ~ElfFile();
  ElfFile(const ElfFile&) = delete;
  ElfFile& operator=(const ElfFile&) = delete;

  bool ok() const { return elf_ != nullptr; }
  const std::string& path() const { return path_; }
  std::string build_id() const;  // raw bytes; empty: none
  // .gnu_debuglink: file name, and CRC of its contents.
  std::optional<std::pair<std::string, uint32_t>> debug_link() const;
  bool has_symbol_table() const;
  // Null where there is no debug info. Owned by this.
  Dwarf* dwarf();

  struct Symbol {
    uint64_t begin, size;  // as in the file
    const char* name;      // mangled; lives as long as this
  };
  // Functions of .symtab, or of .dynsym where there is none, in order of address.
  std::vector<Symbol> functions() const;

 private:
  Elf_Scn* section(const char* name, uint32_t type) const;

  std::string path_;
  int descriptor_ = -1;
  Elf* elf_ = nullptr;
  Dwarf* dwarf_ = nullptr;
  bool tried_dwarf_ = false;
};

// The CRC that .gnu_debuglink holds (CRC-32 of IEEE 802.3), of a whole file; none: unreadable.
std::optional<uint32_t> debug_link_crc(const std::string& path);

}  // namespace gpuprof
