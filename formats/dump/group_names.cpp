// SPDX-License-Identifier: Apache-2.0
#include "formats/dump/group_names.h"

#include <string>
#include <unordered_map>

#include "formats/dump/edit_shapes.h"
#include "formats/io/utf8.h"

namespace gpuprof {
namespace {

constexpr uint64_t kMostListed = 1 << 20;  // ranks of a dump's groups; a hostile file claims more

struct Group {
  StringIndex name, description, ranks;
  bool operator==(const Group&) const = default;
};

std::string rank_list(const dump::Communicator& of, uint64_t& listed) {
  if (of.first_rank() == 0 || of.rank_stride() == 0) return {};
  if ((listed += of.rank_count()) > kMostListed) return {};
  std::string out = "[";
  uint64_t rank = of.first_rank() - 1;
  for (uint32_t i = 0; i < of.rank_count(); ++i, rank += of.rank_stride()) {
    if (i) out += ", ";
    out += std::to_string(rank);
  }
  return out + "]";
}

std::unordered_map<uint64_t, Group> groups_by_handle(Trace& trace, const dump::Summary& summary) {
  std::unordered_map<uint64_t, Group> out;
  uint64_t listed = 0;
  for (const dump::Communicator& each : summary.communicator()) {
    const Group group{trace.strings.intern(valid_utf8(each.name())),
                      trace.strings.intern(valid_utf8(each.description())),
                      trace.strings.intern(rank_list(each, listed))};
    const auto [at, fresh] = out.emplace(each.handle(), group);
    if (!fresh && at->second != group) at->second = {};
  }
  return out;
}

}  // namespace

void name_groups(Trace& trace, const dump::Summary& summary, std::vector<OpenLane>& lanes) {
  const auto groups = groups_by_handle(trace, summary);
  if (groups.empty()) return;
  edit_shapes(trace, lanes, [&](Shape& shape) {
    if (shape.kind != Kind::collective) return false;
    const auto group = groups.find(shape.communicator);
    if (group == groups.end() || group->second == Group{}) return false;
    shape.group = group->second.name;
    shape.group_description = group->second.description;
    shape.group_ranks = group->second.ranks;
    return true;
  });
}

}  // namespace gpuprof
