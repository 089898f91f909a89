// SPDX-License-Identifier: Apache-2.0
#include "tools/symbols/symbolizer.h"

#include <dwarf.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>

#include "formats/trace/names.h"
#include "tools/symbols/dwarf_lines.h"
#include "tools/symbols/elf_file.h"

namespace gpuprof {
namespace {

std::string hex(std::string_view bytes) {
  std::string out;
  for (const char byte : bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return out;
}

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/') + 1); }

// Without what the compiler says of the copy of a function: "f(int) [clone .isra.0]".
std::string plain_name(const char* mangled) {
  std::string name = demangle(mangled);
  const size_t clone = name.find(" [clone ");
  if (clone != std::string::npos) name.resize(clone);
  return name;
}

// Whether the file at the module's path still is what was mapped.
bool is_same_file(const Module& module, const ElfFile& file) {
  if (!module.build_id.empty()) return file.build_id() == module.build_id;
  struct stat status {};
  if (module.file_bytes == 0 || ::stat(file.path().c_str(), &status) != 0) return false;
  const auto modified = static_cast<uint64_t>(status.st_mtim.tv_sec) * 1000000000u +
                        static_cast<uint64_t>(status.st_mtim.tv_nsec);
  return static_cast<uint64_t>(status.st_size) == module.file_bytes &&
         modified == module.modified_ns && file.build_id().empty();
}

// One file of code and what tells names about it.
class ModuleSymbols {
 public:
  ModuleSymbols(const Module& module, const SymbolOptions& options) {
    // Where paths are redacted (GPUPROF_REDACT) the build id alone leads to the debug info.
    if (module.path.starts_with('/')) code_ = open(module.path);
    if (code_ && !is_same_file(module, *code_)) code_.reset();
    find_debug_file(module, options);
    ElfFile* const named = debug_ && debug_->has_symbol_table() ? debug_.get() : code_.get();
    if (named) functions_ = named->functions();
    ElfFile* const described = debug_ ? debug_.get() : code_.get();
    if (described && described->dwarf()) lines_ = std::make_unique<DwarfLines>(described->dwarf());
  }

  // `place` is an address within the call, as in the file.
  std::vector<Frame> at(uint64_t place) const {
    std::vector<Frame> frames;
    if (lines_) frames = lines_->at(place);
    const ElfFile::Symbol* const symbol = function_at(place);
    // The symbol table has the whole name with its parameters; debug info of C has the same.
    if (symbol && !frames.empty()) frames.back().function = plain_name(symbol->name);
    if (symbol && frames.empty()) frames.push_back({plain_name(symbol->name), "", 0, false});
    std::erase_if(frames, [](const Frame& frame) { return frame.function.empty(); });
    return frames;
  }

 private:
  static std::unique_ptr<ElfFile> open(const std::string& path) {
    auto file = std::make_unique<ElfFile>(path);
    if (!file->ok()) file.reset();
    return file;
  }

  // The places where gdb looks. By build id the module itself need not be there.
  void find_debug_file(const Module& module, const SymbolOptions& options) {
    if (code_ && code_->dwarf()) return;
    const std::string& id = module.build_id;
    for (const std::string& dir : options.debug_dirs) {
      if (id.size() < 2) break;
      if (take_debug_file(
              fmt::format("{}/.build-id/{}/{}.debug", dir, hex(id.substr(0, 1)), hex(id.substr(1))),
              module, 0, false)) {
        return;
      }
    }
    const auto link = code_ ? code_->debug_link() : std::nullopt;
    if (!link) return;
    const std::string folder = folder_of(module.path);
    std::vector<std::string> places = {folder + link->first, folder + ".debug/" + link->first};
    for (const std::string& dir : options.debug_dirs) places.push_back(dir + folder + link->first);
    for (const std::string& place : places) {
      if (place != module.path && take_debug_file(place, module, link->second, true)) return;
    }
  }

  // True where it is that module's debug info: of the same build id, or, without one, with the CRC.
  bool take_debug_file(const std::string& path, const Module& module, uint32_t crc, bool has_crc) {
    std::unique_ptr<ElfFile> file = open(path);
    if (!file) return false;
    const std::string id = file->build_id();
    const bool same =
        !module.build_id.empty() ? id == module.build_id : has_crc && file->crc() == crc;
    if (!same) return false;
    debug_ = std::move(file);
    return true;
  }

  const ElfFile::Symbol* function_at(uint64_t place) const {
    auto after = std::upper_bound(
        functions_.begin(), functions_.end(), place,
        [](uint64_t value, const ElfFile::Symbol& symbol) { return value < symbol.begin; });
    // Of several at the same address (aliases) the first that covers the place.
    const ElfFile::Symbol* found = nullptr;
    for (int tries = 0; after != functions_.begin() && tries < 16; ++tries) {
      --after;
      if (found && after->begin != found->begin) break;
      if (place - after->begin < after->size) found = &*after;
    }
    return found;
  }

  std::unique_ptr<ElfFile> code_, debug_;
  std::vector<ElfFile::Symbol> functions_;
  std::unique_ptr<DwarfLines> lines_;
};

}  // namespace

void symbolize(Trace& trace, const SymbolOptions& options) {
  // The same file is mapped in many processes. Without a build id another may have lain there.
  std::map<std::tuple<std::string, std::string, uint64_t, uint64_t>, std::unique_ptr<ModuleSymbols>>
      known;
  for (Process& process : trace.processes) {
    for (const uint64_t address : process.stacks.addresses()) {
      const Module* const module = process.stacks.module_of(address);
      if (!module) continue;
      auto& symbols =
          known[{module->path, module->build_id, module->file_bytes, module->modified_ns}];
      if (!symbols) symbols = std::make_unique<ModuleSymbols>(*module, options);
      process.stacks.set_frames(address, symbols->at(address - 1 - module->bias));
    }
  }
}

std::vector<Frame> symbolize_address(const Module& module, uint64_t address,
                                     const SymbolOptions& options) {
  return ModuleSymbols(module, options).at(address - 1 - module.bias);
}

}  // namespace gpuprof
