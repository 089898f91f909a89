// SPDX-License-Identifier: Apache-2.0
// Which launch of a CUDA graph a record of one of its nodes belongs to, without CUPTI's correlation
// id: up to CUDA 13.1 those of graph launches are wrong from the second profiling session of a
// process on (CUPTI release notes, 13.1 update 1).
//
// Launches of one executable graph run one after the other, on whatever stream (cudaGraphLaunch),
// and each runs each node once. So the n-th record of a node belongs to the n-th launch of its
// graph that CUPTI records. Where the count is not sure (a launch while recording began, a dropped
// record, a record that began before its launch) it is not guessed: nothing is told of that graph
// until the host has waited for the device, after which records belong to later launches.
#pragma once

#include <cstddef>
#include <cstdint>

#include "formats/core/byte_buffer.h"

namespace gpuprof {

// Not thread-safe; times in any one unit.
class GraphOrder {
 public:
  void clear();
  // A launch began: `graph` is CUPTI's id of the executable graph. `recorded`: it is surely
  // recorded, and every launch before it that is recorded was told. In order of time for each
  // graph.
  void add_launch(uint32_t graph, uint32_t correlation, uint64_t begin, bool recorded);
  // The host waited for a whole device from `begin` to `end`: what was launched before `begin` was
  // over at `end`. In order of `end`.
  void add_wait(uint64_t begin, uint64_t end);
  // A record of a node, in order of time for each node: the launch's correlation id; 0: it cannot
  // be told.
  uint32_t launch_of(uint32_t graph, uint64_t node, uint64_t start);
  // Some record of work that was over at `now` will not come, or has no time.
  void lose_count(uint64_t now);
  // A graph that may repeat or leave out nodes: nothing is told of it.
  void exclude(uint32_t graph);

 private:
  struct Launch {
    uint64_t begin;
    uint64_t first_start;  // of its records so far; 0: none
    uint32_t correlation;
    uint32_t next;  // launch of the same graph, as number + 1; 0: none yet
  };
  struct Graph {
    uint64_t key;
    uint64_t since;        // records that began before do not count
    uint32_t first, last;  // launch, as number + 1
    uint32_t base;         // the launch of a node's first record since, as number + 1; 0: the first
    uint32_t count;        // how often it was counted anew
    bool sure, excluded;
  };
  struct Node {
    uint64_t key;
    uint32_t count;     // of its graph, when `launch` was set
    uint32_t launch;    // of its newest record, as number + 1
    uint64_t previous;  // start of that record
  };
  struct Wait {
    uint64_t begin, end;
  };
  // Rows in order of arrival, found by key.
  template <typename Row>
  struct Table {
    PodVector<Row> rows;
    PodVector<uint32_t> slots;  // open addressing: index of a row + 1
    Row* find_or_add(uint64_t key);
    void clear();
  };

  const Wait* last_wait_before(uint64_t time) const;
  bool fits(const Launch& launch, const Graph& graph, uint64_t start) const;
  bool count_anew(Graph& graph, uint64_t start);
  uint32_t next_launch(const Graph& graph, const Node& node) const;

  PodVector<Launch> launches_;
  PodVector<Wait> waits_;
  Table<Graph> graphs_;
  Table<Node> nodes_;
  uint64_t lost_ = 0;  // the newest lose_count(): only waits that began later tell anything
};

}  // namespace gpuprof
