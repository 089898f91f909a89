// SPDX-License-Identifier: Apache-2.0
// Native stacks as the `stackFrames` of trace event JSON: a tree whose nodes name their caller's;
// an event names the node of its innermost function (`sf`).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "formats/io/json_text.h"
#include "formats/trace/stacks.h"

namespace gpuprof {

class StackFrames {
 public:
  // The node of each stack of a process up to `last`, by StackIndex; of StackIndex::none it is 0,
  // none.
  std::vector<uint32_t> nodes_of(const StackTable& table, StackIndex last);
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
  std::map<const StackTable*, std::vector<uint32_t>> known_;
};

}  // namespace gpuprof
