// SPDX-License-Identifier: Apache-2.0
// Which launches of CUDA graphs still lack records of nodes when their window ends. A launch has
// one record for each node that ran, so one record does not mean that it is over. It is over with
// as many as another launch of the same executable graph had, or, if it is the only one, as the
// graph has nodes with records. Drain thread only.
#pragma once

#include <cstdint>

#include "formats/core/byte_buffer.h"

namespace gpuprof {

class GraphLaunches {
 public:
  void clear();
  // A launch of `exec`. `nodes`: how many records CUPTI has of one; 0: not known, and then others'
  // records tell.
  void add(uint32_t correlation, uint64_t exec, uint32_t nodes);
  // The record of a node, in any order with its launch.
  void add_record(uint32_t correlation);
  // Launches with some of their records and not all; of those whose nodes are known, or of all.
  uint64_t incomplete(bool known_only) const;

 private:
  struct Launch {
    uint64_t key;   // correlation id
    uint32_t exec;  // index in execs_ + 1; 0: the launch itself has not been told yet
    uint32_t records;
  };
  struct Exec {
    uint64_t key;  // the driver's handle
    uint32_t nodes;
    uint32_t most;       // records of one launch
    uint32_t best;       // that launch, the first with so many
    uint32_t with_some;  // launches with any
  };
  // Rows in order of arrival, found by key.
  template <typename Row>
  struct Table {
    PodVector<Row> rows;
    PodVector<uint32_t> slots;  // open addressing: index of a row + 1
    // The key's row, added with zeroes if there is none; the number of rows where memory is out.
    size_t find_or_add(uint64_t key);
  };

  // The launch has more records than before, the first of all where it had none.
  void count(size_t launch, bool first);

  Table<Launch> launches_;
  Table<Exec> execs_;
};

}  // namespace gpuprof
