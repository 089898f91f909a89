// SPDX-License-Identifier: Apache-2.0
// Native stacks as the `stackFrames` of trace event JSON: a tree whose nodes name their caller's;
// an event names the node of its innermost function (`sf`).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "formats/json_text.h"
#include "formats/stacks.h"

namespace gpuprof {

class StackFrames {
 public:
  // The node of a stack of the process whose table that is; 0: none.
  uint32_t node_of(const StackTable& table, StackIndex stack);
  bool empty() const { return nodes_.empty(); }
  // The dictionary with all nodes that there are by now.
  void write(JsonText& json) const;

 private:
  struct Node {
    uint32_t parent;  // 0: outermost
    std::string name;
  };
  std::vector<Node> nodes_;  // number - 1
  std::map<std::pair<uint32_t, std::string>, uint32_t> index_;
  std::map<std::pair<const StackTable*, StackIndex>, uint32_t> known_;
};

}  // namespace gpuprof
