// SPDX-License-Identifier: Apache-2.0
// Files with code or debug info that mean harm: what they are, and what they ask for.
#include "tools/symbols/elf_file.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace gpuprof {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMiB = 1 << 20;

struct Section {
  std::string name, bytes;
  uint64_t flags = 0;
};

template <typename T>
std::string raw(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// An object file of these sections alone.
std::string elf_of(std::vector<Section> sections) {
  sections.insert(sections.begin(), Section{});
  sections.push_back({".shstrtab", "", 0});
  std::string names;
  std::vector<uint32_t> at;
  for (const Section& section : sections) {
    at.push_back(static_cast<uint32_t>(names.size()));
    names += section.name + '\0';
  }
  sections.back().bytes = names;
  std::string contents, headers;
  for (size_t i = 0; i < sections.size(); ++i) {
    Elf64_Shdr header{};
    header.sh_name = at[i];
    header.sh_type = i == 0 ? SHT_NULL : i + 1 == sections.size() ? SHT_STRTAB : SHT_PROGBITS;
    header.sh_flags = sections[i].flags;
    header.sh_offset = sizeof(Elf64_Ehdr) + contents.size();
    header.sh_size = sections[i].bytes.size();
    header.sh_addralign = 1;
    contents += sections[i].bytes;
    headers += raw(header);
  }
  contents.resize((contents.size() + 7) / 8 * 8);
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_REL;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_ehsize = sizeof header;
  header.e_shoff = sizeof header + contents.size();
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = static_cast<uint16_t>(sections.size());
  header.e_shstrndx = static_cast<uint16_t>(sections.size() - 1);
  return raw(header) + contents + headers;
}

std::string deflated_zeros(uint64_t size) {
  const std::string zeros(size, '\0');
  uLongf length = compressBound(size);
  std::string out(length, '\0');
  compress2(reinterpret_cast<Bytef*>(out.data()), &length,
            reinterpret_cast<const Bytef*>(zeros.data()), size, 9);
  out.resize(length);
  return out;
}

Section compressed(uint64_t size) {
  const Elf64_Chdr header{ELFCOMPRESS_ZLIB, 0, size, 1};
  return {".debug_info", raw(header) + deflated_zeros(size), SHF_COMPRESSED};
}

Section old_compressed(uint64_t size) {
  std::string bytes = "ZLIB";
  for (int shift = 56; shift >= 0; shift -= 8) bytes += static_cast<char>(size >> shift & 0xff);
  return {".zdebug_info", bytes + deflated_zeros(size), 0};
}

class ElfFileTest : public testing::Test {
 protected:
  ElfFileTest()
      : path_(fs::temp_directory_path() / ("gpuprof_elf_" + std::to_string(::getpid()))) {}
  ~ElfFileTest() override { fs::remove(path_); }

  ElfFile file_of(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary) << bytes;
    return ElfFile(path_);
  }

  const fs::path path_;
};

TEST_F(ElfFileTest, CompressedDebugInfoIsReadUpToALimit) {
  for (Section (*const make)(uint64_t) : {compressed, old_compressed}) {
    EXPECT_NE(file_of(elf_of({make(32 * kMiB)})).dwarf(), nullptr);
    EXPECT_EQ(file_of(elf_of({make(400 * kMiB)})).dwarf(), nullptr);
  }
}

// Not 64 MiB each.
TEST_F(ElfFileTest, TheLimitIsOfAllSectionsTogether) {
  std::vector<Section> sections;
  for (const char* const name : {".debug_info", ".debug_abbrev", ".debug_line", ".debug_str"}) {
    sections.push_back(compressed(60 * kMiB));
    sections.back().name = name;
  }
  EXPECT_NE(file_of(elf_of({sections[0]})).dwarf(), nullptr);
  EXPECT_EQ(file_of(elf_of(sections)).dwarf(), nullptr);
}

TEST_F(ElfFileTest, ASparseFileIsNotRead) {
  const std::string bytes = elf_of({{".debug_info", "x", 0}});
  ASSERT_TRUE(file_of(bytes).ok());
  fs::resize_file(path_, uint64_t{1} << 40);
  EXPECT_FALSE(ElfFile(path_).ok());
}

TEST_F(ElfFileTest, OnlyRegularFilesAreRead) {
  EXPECT_FALSE(ElfFile("/dev/zero").ok());
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_FALSE(ElfFile(path_).ok());
}

TEST_F(ElfFileTest, TheCrcIsOfTheWholeFile) {
  const std::string bytes = elf_of({{".comment", "123456789", 0}});
  EXPECT_EQ(file_of(bytes).crc(), crc32(0, reinterpret_cast<const Bytef*>(bytes.data()),
                                        static_cast<uInt>(bytes.size())));
}

}  // namespace
}  // namespace gpuprof
