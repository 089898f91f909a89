// SPDX-License-Identifier: Apache-2.0
#include "tools/symbols/elf_file.h"

#include <fcntl.h>
#include <gelf.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "formats/io/file_bytes.h"

namespace gpuprof {

ElfFile::ElfFile(const std::string& path) : path_(path) {
  elf_version(EV_CURRENT);
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct stat info {};
  if (descriptor_ < 0 || ::fstat(descriptor_, &info) != 0 || why_not_read(info)) return;
  elf_ = elf_begin(descriptor_, ELF_C_READ_MMAP, nullptr);
  if (elf_ && elf_kind(elf_) != ELF_K_ELF) {
    elf_end(elf_);
    elf_ = nullptr;
  }
}

ElfFile::~ElfFile() {
  if (dwarf_) dwarf_end(dwarf_);
  if (elf_) elf_end(elf_);
  if (descriptor_ >= 0) ::close(descriptor_);
}

// By name, or by type where that is not 0. Debug files keep the headers of sections whose contents
// they lack (SHT_NOBITS): those do not count.
Elf_Scn* ElfFile::section(const char* name, uint32_t type) const {
  size_t names = 0;
  if (!elf_ || elf_getshdrstrndx(elf_, &names) != 0) return nullptr;
  for (Elf_Scn* at = nullptr; (at = elf_nextscn(elf_, at)) != nullptr;) {
    GElf_Shdr header;
    if (!gelf_getshdr(at, &header) || header.sh_type == SHT_NOBITS) continue;
    if (type != 0) {
      if (header.sh_type == type) return at;
      continue;
    }
    const char* const found = elf_strptr(elf_, names, header.sh_name);
    if (found && std::strcmp(found, name) == 0) return at;
  }
  return nullptr;
}

std::string_view ElfFile::bytes() const {
  size_t size = 0;
  const char* const begin = elf_ ? elf_rawfile(elf_, &size) : nullptr;
  return begin ? std::string_view(begin, size) : std::string_view();
}

std::string_view ElfFile::segment(uint32_t type) const {
  size_t count = 0;
  if (!elf_ || elf_getphdrnum(elf_, &count) != 0) return {};
  for (size_t i = 0; i < count; ++i) {
    GElf_Phdr header;
    if (!gelf_getphdr(elf_, static_cast<int>(i), &header) || header.p_type != type) continue;
    const std::string_view all = bytes();
    return header.p_offset <= all.size() ? all.substr(header.p_offset, header.p_filesz)
                                         : std::string_view();
  }
  return {};
}

std::optional<uint64_t> ElfFile::offset_of(uint64_t address) const {
  size_t count = 0;
  if (!elf_ || elf_getphdrnum(elf_, &count) != 0) return {};
  for (size_t i = 0; i < count; ++i) {
    GElf_Phdr header;
    if (!gelf_getphdr(elf_, static_cast<int>(i), &header) || header.p_type != PT_LOAD) continue;
    if (address - header.p_vaddr < header.p_filesz) {
      return header.p_offset + (address - header.p_vaddr);
    }
  }
  return {};
}

bool ElfFile::is_for_this_machine() const {
#if defined(__x86_64__)
  constexpr int kMachine = EM_X86_64;
#elif defined(__aarch64__)
  constexpr int kMachine = EM_AARCH64;
#endif
  GElf_Ehdr header;
  return elf_ && gelf_getehdr(elf_, &header) && gelf_getclass(elf_) == ELFCLASS64 &&
         header.e_machine == kMachine;
}

std::string ElfFile::interpreter() const {
  const std::string_view text = segment(PT_INTERP);
  return std::string(text.substr(0, text.find('\0')));
}

std::vector<std::string> ElfFile::needed() const {
  const std::string_view dynamic = segment(PT_DYNAMIC);
  std::vector<uint64_t> names;
  std::optional<uint64_t> strings;
  Elf64_Dyn entry;
  for (size_t at = 0; at + sizeof entry <= dynamic.size(); at += sizeof entry) {
    std::memcpy(&entry, dynamic.data() + at, sizeof entry);
    if (entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_NEEDED) names.push_back(entry.d_un.d_val);
    if (entry.d_tag == DT_STRTAB) strings = offset_of(entry.d_un.d_ptr);
  }
  std::vector<std::string> out;
  for (const uint64_t name : names) {
    if (!strings || name >= bytes().size() || *strings + name >= bytes().size()) continue;
    const std::string_view text = bytes().substr(*strings + name);
    out.emplace_back(text.substr(0, text.find('\0')));
  }
  return out;
}

std::string ElfFile::build_id() const {
  for (Elf_Scn* at = nullptr; elf_ && (at = elf_nextscn(elf_, at)) != nullptr;) {
    GElf_Shdr header;
    if (!gelf_getshdr(at, &header) || header.sh_type != SHT_NOTE) continue;
    Elf_Data* const data = elf_getdata(at, nullptr);
    GElf_Nhdr note;
    size_t name = 0, description = 0;
    for (size_t offset = 0;
         data && (offset = gelf_getnote(data, offset, &note, &name, &description)) > 0;) {
      const char* const bytes = static_cast<const char*>(data->d_buf);
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
          std::memcmp(bytes + name, "GNU", 4) == 0) {
        return std::string(bytes + description, note.n_descsz);
      }
    }
  }
  return {};
}

std::optional<std::pair<std::string, uint32_t>> ElfFile::debug_link() const {
  Elf_Scn* const found = section(".gnu_debuglink", 0);
  Elf_Data* const data = found ? elf_getdata(found, nullptr) : nullptr;
  if (!data || data->d_size < 8) return std::nullopt;
  const char* const bytes = static_cast<const char*>(data->d_buf);
  const size_t length = strnlen(bytes, data->d_size);
  const size_t at = (length + 4) & ~size_t{3};
  if (length == 0 || at + 4 > data->d_size) return std::nullopt;
  uint32_t crc;
  std::memcpy(&crc, bytes + at, sizeof crc);
  return std::pair(std::string(bytes, length), crc);
}

bool ElfFile::has_symbol_table() const { return section("", SHT_SYMTAB) != nullptr; }

// The bytes that libdw asks for as it opens the debug info: what sections say that they inflate to,
// in ELF's way, and in the older one of sections called .zdebug_*.
uint64_t ElfFile::inflated_bytes() const {
  constexpr std::string_view kOldMagic = "ZLIB";
  size_t names = 0;
  uint64_t sum = 0;
  if (!elf_ || elf_getshdrstrndx(elf_, &names) != 0) return 0;
  for (Elf_Scn* at = nullptr; (at = elf_nextscn(elf_, at)) != nullptr;) {
    GElf_Shdr header;
    GElf_Chdr compressed;
    if (!gelf_getshdr(at, &header) || header.sh_type == SHT_NOBITS) continue;
    uint64_t size = 0;
    if ((header.sh_flags & SHF_COMPRESSED) != 0) {
      if (gelf_getchdr(at, &compressed)) size = compressed.ch_size;
    } else if (const char* const name = elf_strptr(elf_, names, header.sh_name);
               name && std::string_view(name).starts_with(".zdebug")) {
      const Elf_Data* const data = elf_rawdata(at, nullptr);
      if (!data || data->d_size < kOldMagic.size() + sizeof size) continue;
      const auto* const bytes = static_cast<const uint8_t*>(data->d_buf);
      if (std::memcmp(bytes, kOldMagic.data(), kOldMagic.size()) != 0) continue;
      for (size_t i = 0; i < sizeof size; ++i) size = size << 8 | bytes[kOldMagic.size() + i];
    }
    if (__builtin_add_overflow(sum, size, &sum)) return UINT64_MAX;
  }
  return sum;
}

Dwarf* ElfFile::dwarf() {
  constexpr uint64_t kAlways = 64 << 20, kThinnest = 256;  // as of all compressed input
  if (!tried_dwarf_ && elf_ && inflated_bytes() <= kAlways + kThinnest * bytes().size() &&
      (section(".debug_info", 0) != nullptr || section(".zdebug_info", 0) != nullptr)) {
    dwarf_ = dwarf_begin_elf(elf_, DWARF_C_READ, nullptr);
  }
  tried_dwarf_ = true;
  return dwarf_;
}

std::vector<ElfFile::Symbol> ElfFile::functions() const {
  std::vector<Symbol> out;
  Elf_Scn* table = section("", SHT_SYMTAB);
  if (!table) table = section("", SHT_DYNSYM);
  GElf_Shdr header;
  if (!table || !gelf_getshdr(table, &header) || header.sh_entsize == 0) return out;
  Elf_Data* const data = elf_getdata(table, nullptr);
  const size_t count = data ? header.sh_size / header.sh_entsize : 0;
  for (size_t i = 0; i < count; ++i) {
    GElf_Sym symbol;
    if (!gelf_getsym(data, static_cast<int>(i), &symbol)) break;
    const int type = GELF_ST_TYPE(symbol.st_info);
    if (type != STT_FUNC && type != STT_GNU_IFUNC) continue;
    if (symbol.st_shndx == SHN_UNDEF || symbol.st_size == 0) continue;
    const char* const name = elf_strptr(elf_, header.sh_link, symbol.st_name);
    if (name && name[0]) out.push_back({symbol.st_value, symbol.st_size, name});
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Symbol& a, const Symbol& b) { return a.begin < b.begin; });
  return out;
}

uint32_t ElfFile::crc() const {
  const std::string_view all = bytes();
  return static_cast<uint32_t>(
      ::crc32_z(0, reinterpret_cast<const Bytef*>(all.data()), all.size()));
}

}  // namespace gpuprof
