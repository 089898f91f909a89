// SPDX-License-Identifier: Apache-2.0
// Frames of Python in the stacks of one message. The ring's stacks refer to a code by the id of its
// names; a message has a table of codes of its own, whose numbers its stacks have. Not thread-safe.
#pragma once

#include <cstring>
#include <string_view>

#include "formats/core/interned.h"
#include "formats/core/ring_file.h"

namespace gpuprof {

// Calls `visit(frame)` with each frame of a stack, innermost first, until it returns false.
template <typename Visit>
bool each_frame(std::string_view stack, const Visit& visit) {
  for (size_t at = 0; at + sizeof(uint64_t) <= stack.size(); at += sizeof(uint64_t)) {
    uint64_t frame;
    std::memcpy(&frame, stack.data() + at, sizeof frame);
    if (!visit(frame)) return false;
  }
  return true;
}

class PythonCodes {
 public:
  void clear() { ids_.clear(); }
  size_t size() const { return ids_.size(); }
  // Puts the number of a Python frame's code in the place of its id; other frames stay as they are.
  // False: no memory.
  bool number(uint64_t& frame) {
    if (!(frame & kPythonFrame)) return true;
    const uint32_t position = ids_.position_of(static_cast<StringId>(frame));
    frame = (frame & ~uint64_t{0xffffffff}) | position;
    return position != kNoPosition;
  }
  // Calls `visit(const PythonCodeName&)` with each, in order of their numbers, until it returns
  // false. `string` gives the text of a StringId.
  template <typename StringOf, typename Visit>
  bool each(const StringOf& string, const Visit& visit) const {
    for (const StringId id : ids_) {
      PythonCodeName name{};
      const std::string_view bytes = string(id);
      // Rings of before had a line behind it.
      if (bytes.size() >= sizeof name) std::memcpy(&name, bytes.data(), sizeof name);
      if (!visit(name)) return false;
    }
    return true;
  }

 private:
  Interned<StringId> ids_;
};

}  // namespace gpuprof
