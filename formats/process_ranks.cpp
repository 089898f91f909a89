// SPDX-License-Identifier: Apache-2.0
#include "formats/process_ranks.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace gpuprof {
namespace {

using ProcessId = std::pair<std::string, uint32_t>;  // host, pid

struct Member {
  uint32_t rank = Shape::kAbsent, size = 0;
  bool unclear = false;  // of two communicators of this size, with different ranks
};

ProcessId id_of(const Process& process) { return {process.header.host(), process.header.pid()}; }

bool lacks_rank(const Process& process) {
  return process.header.rank() < 0 && !process.is_data_worker();
}

bool tells_rank(const Shape& shape) {
  return shape.kind == Kind::collective && shape.rank != Shape::kAbsent && shape.rank_count > 1;
}

void look_at(const Trace& trace, const Process& process, Member& member) {
  for (size_t i = 0; i < process.events.size(); ++i) {
    const Shape& shape = trace.shapes[process.events.shape_of(i)];
    if (!tells_rank(shape)) continue;
    if (shape.rank_count < member.size) continue;
    const bool same_size = shape.rank_count == member.size;
    member.unclear = same_size && (member.unclear || shape.rank != member.rank);
    member.rank = shape.rank;
    member.size = shape.rank_count;
  }
}

}  // namespace

void find_ranks(Trace& trace) {
  if (std::none_of(trace.shapes.begin(), trace.shapes.end(), tells_rank)) return;
  std::map<ProcessId, Member> members;
  std::map<ProcessId, int32_t> known;
  for (const Process& process : trace.processes) {
    if (lacks_rank(process)) {
      look_at(trace, process, members[id_of(process)]);
    } else if (!process.is_data_worker()) {
      known[id_of(process)] = process.header.rank();
    }
  }
  std::set<int32_t> taken;
  for (const auto& [id, rank] : known) taken.insert(rank);
  for (const auto& [id, member] : members) {
    if (member.size == 0) continue;
    if (member.unclear || !taken.insert(static_cast<int32_t>(member.rank)).second) return;
  }
  for (Process& process : trace.processes) {
    const bool worker = process.is_data_worker() && process.header.rank() < 0;
    if (!worker && !lacks_rank(process)) continue;
    const uint32_t pid = worker ? process.header.parent_pid() : process.header.pid();
    const auto found = members.find({process.header.host(), pid});
    if (found == members.end() || found->second.size == 0) continue;
    process.header.set_rank(static_cast<int32_t>(found->second.rank));
    if (process.header.world_size() == 0) process.header.set_world_size(found->second.size);
  }
}

}  // namespace gpuprof
