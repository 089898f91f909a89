// SPDX-License-Identifier: Apache-2.0
// Compares ranks: which collectives belong together, who came late, and by how much a rank's own
// work is slower than that of the others.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "tools/analysis/ranks/slow_ranks.h"
#include "tools/analysis/timeline.h"

namespace gpuprof::analysis {

// One collective on one GPU of a rank: the work that does it, in Process::events. A call, or a
// group of calls, may do several pieces; they are one part from the first begin to the last end.
struct CollectivePart {
  uint32_t rank;   // index of the timeline
  uint32_t event;  // the one that begins first
  uint32_t last;   // the one that ends last
};

// A collective that was recorded on two GPUs or more. All of them begin when the last has come, so
// what one waits is its duration less the shortest. Of one that copy engines do that is not known:
// NCCL's waits between the copies (cuStreamBatchMemOp) have no records, and nobody leaves with the
// others.
struct JointCollective {
  std::vector<CollectivePart> parts;  // in order of rank
  int64_t shortest_ns;
  int64_t last_begin;  // when the last one had come
  bool by_copies = false;
};

// A rank's time in its median step against the median rank's: 1 is as the median, and where the
// difference is less than a hundredth of a step. One pause among steady steps changes nothing.
struct RankSpeed {
  int32_t rank;  // as the program counts, -1: not known
  double compute = 1, data_loading = 1, host = 1;
  // A step; the host's without what its thread waited for a processor.
  double compute_us = 0, data_loading_us = 0, host_us = 0;
  // A joint step, the mean: in joint collectives, for the last to come. Of several GPUs in the
  // process the mean: sum over those in such collectives, over their number.
  double waited_us = 0;
  double waited_median_us = 0;  // the same of the median step
  // Of that the time in which no GPU of the process computes: it makes steps longer. GPUs that wait
  // on several streams wait once.
  double exposed_us = 0, exposed_median_us = 0;
  // A joint step, the mean: what the other ranks' exposed_us have of waits that it ended, as the
  // last.
  double awaited_us = 0;
  double last_pct = 0;  // of the joint collectives: it, or one of its GPUs, came last
  // The joint ones of the joint steps that it is in, less those that copy engines do; 0: how it
  // compares is not known.
  size_t collectives = 0;
};

// Of a timeline's steps, by place.
struct StepRange {
  size_t first, end;
  size_t size() const { return end - first; }
};

struct RankComparison {
  std::vector<JointCollective> collectives;
  std::vector<std::unordered_map<uint32_t, uint32_t>> joint_of;  // by rank: event -> `collectives`
  std::vector<RankSpeed> speeds;                                 // by timeline
  std::vector<SlowRank> slow;                                    // most excess first
  bool comparable = false;  // more than one rank in the same steps
  // By timeline: the steps that all ranks have with which it does collectives, directly or not; of
  // one that does none all of its own.
  std::vector<StepRange> joint_steps;
  bool windows_differ = false;  // some rank has other steps beside them
  // They differ, and no step is left, or only one, between whose end and the next one's all ranks
  // are recorded: each is looked at alone, and not `comparable`.
  bool apart = false;
  std::map<uint64_t, double>
      exposed_us;      // by step: what RankSpeed::exposed_us has of it, all ranks
  bool named = false;  // by NCCL's calls, which the dumps of all ranks name
  size_t timed = 0;    // of `collectives` in joint steps: those of which is known who waited
  // Pieces of work that collectives did in the steps, and those found on another rank, too.
  size_t works = 0, matched = 0;
};

RankComparison compare_ranks(std::span<const Timeline> timelines);

}  // namespace gpuprof::analysis
