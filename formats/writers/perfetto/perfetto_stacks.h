// SPDX-License-Identifier: Apache-2.0
// Call stacks of one process as Perfetto's interned call stacks.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "formats/trace/stacks.h"
#include "formats/writers/perfetto/perfetto_packets.h"

namespace gpuprof::perfetto {

class Stacks {
 public:
  // Both outlive this.
  Stacks(const StackTable& table, PacketWriter& out) : table_(table), out_(out) {}
  // Its lines, as the value of an argument.
  uint64_t text(StackIndex stack);
  // Of samples and of host memory.
  uint64_t callstack(StackIndex stack);

 private:
  const std::vector<uint64_t>& frames_at(uint64_t address);
  // The mapping of addresses in no file: generated code, or a file that is not known. A frame
  // without a mapping is an import error (stackprofile_invalid_mapping_id), and so is a stack
  // without a frame; Perfetto then drops the whole stack.
  uint64_t no_file();

  const StackTable& table_;
  PacketWriter& out_;
  // Numbers in the file: outermost first of each address, of each module.
  std::unordered_map<uint64_t, std::vector<uint64_t>> frames_;
  std::unordered_map<const Module*, uint64_t> mappings_;
  uint64_t python_ = 0;   // the mapping of all Python frames
  uint64_t no_file_ = 0;  // 0: not defined yet
};

}  // namespace gpuprof::perfetto
