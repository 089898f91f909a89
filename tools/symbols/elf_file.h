// SPDX-License-Identifier: Apache-2.0
// One ELF file with code or with the debug info of one. What a file says of itself is not trusted:
// libelf checks it against the size. A file is read if it is regular, and not sparse
// (why_not_read). Not thread-safe.
#pragma once

#include <elfutils/libdw.h>
#include <libelf.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
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
  // Of the whole file, as .gnu_debuglink holds it (CRC-32 of IEEE 802.3).
  uint32_t crc() const;
  // Null where there is no debug info, or its sections inflate to more than 64 MiB and 256 times
  // the file's size. Owned by this.
  Dwarf* dwarf();

  struct Symbol {
    uint64_t begin, size;  // as in the file
    const char* name;      // mangled; lives as long as this
  };
  // Functions of .symtab, or of .dynsym where there is none, in order of address.
  std::vector<Symbol> functions() const;

  // For the machine that this command was built for.
  bool is_for_this_machine() const;
  // PT_INTERP: the dynamic linker that it asks for; empty: none.
  std::string interpreter() const;
  std::vector<std::string> needed() const;  // DT_NEEDED, in order
  // All of it, as it lies on disk; lives as long as this.
  std::string_view bytes() const;

 private:
  uint64_t inflated_bytes() const;
  Elf_Scn* section(const char* name, uint32_t type) const;
  // The first segment of that type, of the file; empty: none, or it lies outside.
  std::string_view segment(uint32_t type) const;
  // Offset in the file of an address; nothing: no segment has it.
  std::optional<uint64_t> offset_of(uint64_t address) const;

  std::string path_;
  int descriptor_ = -1;
  Elf* elf_ = nullptr;
  Dwarf* dwarf_ = nullptr;
  bool tried_dwarf_ = false;
};

}  // namespace gpuprof
