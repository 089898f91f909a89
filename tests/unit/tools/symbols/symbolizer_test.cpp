// SPDX-License-Identifier: Apache-2.0
// Which file names the addresses of a module.
#include "tools/symbols/symbolizer.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

namespace gpuprof {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;

constexpr uint64_t kBias = 0x10000, kFunction = 0x100, kBytes = 0x80;

template <typename T>
std::string raw(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

struct DebugInfo {
  std::string entries, abbreviations;
};

// A unit with a block in a block, and so on.
DebugInfo debug_info(size_t depth) {
  const std::string range = raw(uint64_t{0}) + raw(uint64_t{0x1000});  // begin, length
  std::string unit = raw(uint16_t{4}) + raw(uint32_t{0}) + '\x08' + '\x01' + range;
  for (size_t i = 0; i < depth; ++i) unit += '\x02' + range;
  unit.append(depth + 1, '\0');
  return {raw(static_cast<uint32_t>(unit.size())) + unit,
          "\x01\x11\x01\x11\x01\x12\x07\0\0\x02\x0b\x01\x11\x01\x12\x07\0\0\0"s};
}

// A library without a build id, with one function.
std::string library_with(const std::string& function, const DebugInfo& debug = {}) {
  const std::string names = '\0' + function + "\0.debug_info\0.debug_abbrev\0"s;
  Elf64_Sym symbol{};
  symbol.st_name = 1;
  symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
  symbol.st_shndx = SHN_ABS;
  symbol.st_value = kFunction, symbol.st_size = kBytes;
  const std::string symbols = raw(Elf64_Sym{}) + raw(symbol);
  std::string contents = symbols + names + debug.entries + debug.abbreviations;
  contents.resize((contents.size() + 7) / 8 * 8);
  Elf64_Shdr table{}, text{}, entries{}, abbreviations{};
  table.sh_type = SHT_SYMTAB, table.sh_link = 2, table.sh_info = 1;
  table.sh_entsize = sizeof symbol, table.sh_addralign = 8;
  table.sh_offset = sizeof(Elf64_Ehdr), table.sh_size = symbols.size();
  text.sh_type = SHT_STRTAB, text.sh_addralign = 1;
  text.sh_offset = sizeof(Elf64_Ehdr) + symbols.size(), text.sh_size = names.size();
  entries.sh_type = abbreviations.sh_type = debug.entries.empty() ? SHT_NOBITS : SHT_PROGBITS;
  entries.sh_name = static_cast<uint32_t>(function.size() + 2);
  abbreviations.sh_name = entries.sh_name + sizeof ".debug_info";
  entries.sh_offset = text.sh_offset + names.size(), entries.sh_size = debug.entries.size();
  abbreviations.sh_offset = entries.sh_offset + entries.sh_size;
  abbreviations.sh_size = debug.abbreviations.size();
  entries.sh_addralign = abbreviations.sh_addralign = 1;
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_DYN, header.e_machine = EM_X86_64, header.e_version = EV_CURRENT;
  header.e_ehsize = sizeof header, header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shoff = sizeof header + contents.size();
  header.e_shnum = 5, header.e_shstrndx = 2;
  return raw(header) + contents + raw(Elf64_Shdr{}) + raw(table) + raw(text) + raw(entries) +
         raw(abbreviations);
}

// A process with a stack in it.
Process process_with(const Module& module) {
  Process process;
  const uint64_t address = kBias + kFunction + 5;
  process.stacks.add(std::span(&address, 1));
  process.stacks.add_module(module);
  return process;
}

std::string name_in(const Process& process) { return process.stacks.lines(StackIndex{1}).front(); }

// A file of the same name that one process had before it was built anew.
TEST(SymbolizerTest, AFileNamesThoseAloneThatHadIt) {
  const fs::path path = fs::temp_directory_path() / ("gpuprof_symbols_" + std::to_string(getpid()));
  std::ofstream(path, std::ios::binary) << library_with("train");
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  Module now{kBias,
             kBias + 0x1000,
             kBias,
             path.string(),
             "",
             static_cast<uint64_t>(info.st_size),
             static_cast<uint64_t>(info.st_mtim.tv_sec) * 1'000'000'000 +
                 static_cast<uint64_t>(info.st_mtim.tv_nsec)};
  Module before = now;
  before.modified_ns -= 1'000'000'000;
  for (const bool old_first : {true, false}) {
    Trace trace;
    trace.processes.push_back(process_with(old_first ? before : now));
    trace.processes.push_back(process_with(old_first ? now : before));
    symbolize(trace, SymbolOptions());
    EXPECT_EQ(name_in(trace.processes[old_first]), "train");
    EXPECT_EQ(name_in(trace.processes[!old_first]), path.filename().string() + "+0x105");
  }
  fs::remove(path);
}

// Compilers nest some dozen blocks. With 100,000 libdw's recursion has more than a stack.
TEST(SymbolizerTest, BlocksThatAreNestedTooDeepHaveNoLines) {
  const fs::path path = fs::temp_directory_path() / ("gpuprof_deep_" + std::to_string(getpid()));
  for (const size_t depth : {size_t{5}, size_t{100'000}}) {
    std::ofstream(path, std::ios::binary) << library_with("train", debug_info(depth));
    struct stat info {};
    ASSERT_EQ(::stat(path.c_str(), &info), 0);
    const Module module{kBias,
                        kBias + 0x1000,
                        kBias,
                        path.string(),
                        "",
                        static_cast<uint64_t>(info.st_size),
                        static_cast<uint64_t>(info.st_mtim.tv_sec) * 1'000'000'000 +
                            static_cast<uint64_t>(info.st_mtim.tv_nsec)};
    const std::vector<Frame> frames =
        symbolize_address(module, kBias + kFunction + 5, SymbolOptions());
    ASSERT_EQ(frames.size(), 1u) << depth;
    EXPECT_EQ(frames[0].function, "train") << depth;
  }
  fs::remove(path);
}

}  // namespace
}  // namespace gpuprof
