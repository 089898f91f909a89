// SPDX-License-Identifier: Apache-2.0
// Call stacks of one process: return addresses as recorded, the files that were mapped at them,
// and, once symbolized, their functions and lines; frames of Python have theirs at once.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gpuprof {

enum class StackIndex : uint32_t { none = 0 };

// A file that was mapped with executable code at [begin, end).
struct Module {
  uint64_t begin = 0, end = 0;
  uint64_t bias = 0;         // address in memory minus address in the file's symbols
  std::string path;          // "[...]": no file
  std::string build_id;      // raw bytes; empty: it has none
  uint64_t file_bytes = 0;   // 0: unknown
  uint64_t modified_ns = 0;  // Unix time; 0: unknown
  bool operator==(const Module&) const = default;
};

// One function at a return address; an address in inlined code has several, innermost first.
struct Frame {
  std::string function;  // demangled
  std::string file;      // "" where it is not known
  uint32_t line = 0;
  bool inlined = false;  // into the one after it
  bool python = false;
};

class StackTable {
 public:
  // Interned. Frames innermost first.
  StackIndex add(std::span<const uint64_t> frames);
  std::span<const uint64_t> operator[](StackIndex index) const;
  bool empty() const { return stacks_.empty(); }
  // What stands for a Python frame in a stack: no address, but frames() knows it.
  uint64_t python_frame(std::string_view function, std::string_view file, uint32_t line);
  // Every address of every stack, once, in order; without Python frames.
  std::vector<uint64_t> addresses() const;

  void add_module(Module module);
  const std::vector<Module>& modules() const { return modules_; }
  // The only module that was ever mapped at the address before this return address, where the call
  // is; null where there is none, or where there were two: which of them it was is not known.
  const Module* module_of(uint64_t address) const;

  void set_frames(uint64_t address, std::vector<Frame> frames);
  // Innermost first; empty: no name is known.
  std::span<const Frame> frames(uint64_t address) const;

  // An address without a name, for people: "libx.so+0x12ab", or "0x7f.." where no file is known.
  std::string place(uint64_t address) const;
  // For people, innermost first: "function (file:line)", "function", "libx.so+0x12ab", "0x7f..".
  std::vector<std::string> lines(StackIndex index) const;

 private:
  struct Range {
    uint32_t first, count;
  };
  std::vector<uint64_t> frames_;
  std::vector<Range> stacks_;  // entry 0 is stack 1
  std::unordered_multimap<uint64_t, StackIndex> index_;
  std::vector<Module> modules_;
  std::unordered_map<uint64_t, std::vector<Frame>> symbols_;
  std::map<std::pair<std::string, std::string>, uint32_t> codes_;  // function, file
};

}  // namespace gpuprof
