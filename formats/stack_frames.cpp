// SPDX-License-Identifier: Apache-2.0
#include "formats/stack_frames.h"

namespace gpuprof {

uint32_t StackFrames::node_of(const StackTable& table, StackIndex stack) {
  if (stack == StackIndex::none) return 0;
  const auto [known, fresh] = known_.try_emplace({&table, stack}, 0);
  if (!fresh) return known->second;
  uint32_t node = 0;
  const std::vector<std::string> lines = table.lines(stack);
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    const auto [at, added] = index_.try_emplace({node, *line}, 0);
    if (added) {
      nodes_.push_back({node, *line});
      at->second = static_cast<uint32_t>(nodes_.size());
    }
    node = at->second;
  }
  return known->second = node;
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
