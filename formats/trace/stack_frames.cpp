// SPDX-License-Identifier: Apache-2.0
#include "formats/trace/stack_frames.h"

namespace gpuprof {

std::vector<uint32_t> StackFrames::nodes_of(const StackTable& table, StackIndex last) {
  const auto [known, first] = known_.try_emplace(&table);
  if (!first) return known->second;
  std::vector<uint32_t>& nodes = known->second;
  nodes.push_back(0);
  for (uint32_t i = 1; i <= static_cast<uint32_t>(last); ++i) {
    uint32_t node = 0;
    const std::vector<std::string> lines = table.lines(static_cast<StackIndex>(i));
    for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
      const auto [at, added] = index_.try_emplace({node, *line}, 0);
      if (added) {
        nodes_.push_back({node, *line});
        at->second = static_cast<uint32_t>(nodes_.size());
      }
      node = at->second;
    }
    nodes.push_back(node);
  }
  return nodes;
}

void StackFrames::write(JsonText& json) const {
  json.raw("{");
  for (size_t i = 0; i < nodes_.size(); ++i) {
    json.flush_if_large();
    json.raw(i ? ",\n\"" : "\n\"").number(i + 1).raw("\":{\"category\":\"native\",\"name\":");
    json.string(nodes_[i].name);
    if (nodes_[i].parent) json.raw(",\"parent\":\"").number(nodes_[i].parent).raw("\"");
    json.raw("}");
  }
  json.raw("}");
}

}  // namespace gpuprof
