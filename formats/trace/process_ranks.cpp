// SPDX-License-Identifier: Apache-2.0
#include "formats/trace/process_ranks.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "formats/trace/process_key.h"

namespace gpuprof {
namespace {

struct Member {
  uint32_t rank = Shape::kAbsent, size = 0;
  bool unclear = false;  // of two communicators of this size, with different ranks
};

// By process: its rank by the environment, -1 where that says none, or says the same one of several
// processes of a run (they have inherited it, as SLURM_PROCID of a batch script).
std::map<ProcessStart, int32_t> named_ranks(const Trace& trace) {
  std::map<std::pair<std::string, int32_t>, std::set<ProcessStart>> claims;  // by run and rank
  std::map<ProcessStart, int32_t> ranks;
  for (const Process& process : trace.processes) {
    if (process.is_data_worker()) continue;
    const int32_t rank = process.header.rank();
    ranks[start_of(process)] = rank;
    if (rank >= 0) claims[{process.header.run(), rank}].insert(start_of(process));
  }
  for (const auto& [claim, processes] : claims) {
    if (processes.size() < 2) continue;
    for (const ProcessStart& id : processes) ranks[id] = -1;
  }
  return ranks;
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
  const std::map<ProcessStart, int32_t> named = named_ranks(trace);
  if (named.size() < 2) return;
  std::map<ProcessStart, Member> members;
  for (const Process& process : trace.processes) {
    const ProcessStart id = start_of(process);
    if (!process.is_data_worker() && named.at(id) < 0) look_at(trace, process, members[id]);
  }
  for (const Process& process : trace.processes) {
    const auto found = members.find(start_of(process));
    if (found == members.end() || process.is_data_worker()) continue;
    Member& member = found->second;
    // The environment knows of more: the communicator is of a part.
    member.unclear |= process.header.world_size() > static_cast<int32_t>(member.size);
  }
  std::set<int32_t> taken;
  for (const auto& [id, rank] : named) {
    if (rank >= 0) taken.insert(rank);
  }
  for (const auto& [id, member] : members) {
    if (member.size == 0) continue;
    if (member.unclear || !taken.insert(static_cast<int32_t>(member.rank)).second) return;
  }
  for (Process& process : trace.processes) {
    const auto found =
        process.is_data_worker() ? loader_of(process, members) : members.find(start_of(process));
    if (found == members.end() || found->second.size == 0) continue;
    process.header.set_rank(static_cast<int32_t>(found->second.rank));
    process.header.set_world_size(static_cast<int32_t>(found->second.size));
  }
}

}  // namespace gpuprof
