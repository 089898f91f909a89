// SPDX-License-Identifier: Apache-2.0
#include "formats/trace/stacks.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "formats/core/ring_file.h"
#include "formats/core/string_table.h"

namespace gpuprof {

StackIndex StackTable::add(std::span<const uint64_t> frames) {
  if (frames.empty()) return StackIndex::none;
  const uint64_t hash = hash_bytes(frames.data(), frames.size_bytes());
  const auto [first, last] = index_.equal_range(hash);
  for (auto at = first; at != last; ++at) {
    if (std::ranges::equal((*this)[at->second], frames)) return at->second;
  }
  stacks_.push_back({static_cast<uint32_t>(frames_.size()), static_cast<uint32_t>(frames.size())});
  frames_.insert(frames_.end(), frames.begin(), frames.end());
  const auto index = static_cast<StackIndex>(stacks_.size());
  index_.emplace(hash, index);
  return index;
}

std::span<const uint64_t> StackTable::operator[](StackIndex index) const {
  const auto number = static_cast<uint32_t>(index);
  if (number == 0 || number > stacks_.size()) return {};
  const Range& range = stacks_[number - 1];
  return {frames_.data() + range.first, range.count};
}

uint64_t StackTable::python_frame(std::string_view function, std::string_view file, uint32_t line) {
  const auto [code, fresh] =
      codes_.try_emplace({std::string(function), std::string(file)}, codes_.size());
  const uint64_t frame = kPythonFrame | uint64_t{line & 0x7fffffffu} << 32 | code->second;
  std::vector<Frame>& known = symbols_[frame];
  if (known.empty()) {
    known.push_back({code->first.first, code->first.second, line & 0x7fffffffu, false, true});
  }
  return frame;
}

std::vector<uint64_t> StackTable::addresses() const {
  std::vector<uint64_t> all;
  std::copy_if(frames_.begin(), frames_.end(), std::back_inserter(all),
               [](uint64_t frame) { return !(frame & kPythonFrame); });
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

void StackTable::add_module(Module module) {
  if (std::find(modules_.begin(), modules_.end(), module) == modules_.end()) {
    modules_.push_back(std::move(module));
  }
}

const Module* StackTable::module_of(uint64_t address) const {
  const Module* found = nullptr;
  for (const Module& module : modules_) {
    if (address - 1 < module.begin || address - 1 >= module.end) continue;
    if (found) return nullptr;
    found = &module;
  }
  return found;
}

void StackTable::set_frames(uint64_t address, std::vector<Frame> frames) {
  symbols_[address] = std::move(frames);
}

std::span<const Frame> StackTable::frames(uint64_t address) const {
  const auto found = symbols_.find(address);
  if (found == symbols_.end()) return {};
  return found->second;
}

std::string StackTable::place(uint64_t address) const {
  const Module* const module = module_of(address);
  if (!module) return fmt::format("{:#x}", address);
  const std::string name = module->path.substr(module->path.rfind('/') + 1);
  return fmt::format("{}+{:#x}", name, address - module->bias);
}

std::vector<std::string> StackTable::lines(StackIndex index) const {
  std::vector<std::string> out;
  for (const uint64_t address : (*this)[index]) {
    for (const Frame& frame : frames(address)) {
      out.push_back(frame.file.empty()
                        ? frame.function
                        : fmt::format("{} ({}:{})", frame.function, frame.file, frame.line));
    }
    if (frames(address).empty()) out.push_back(place(address));
  }
  return out;
}

}  // namespace gpuprof
