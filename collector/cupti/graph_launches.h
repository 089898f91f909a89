// SPDX-License-Identifier: Apache-2.0
// Which launches of CUDA graphs still lack records of nodes when their window ends. A launch has
// one record for each node that ran, so one record does not mean that it is over. Launches of one
// graph run one after the other. Only the newest with a record may lack some; it is over with as
// many as the others of its graph have. Drain thread only.
#pragma once

#include <cstdint>

#include "formats/core/byte_buffer.h"

namespace gpuprof {

class GraphLaunches {
 public:
  void clear();
  // A launch in the window, of this executable graph's handle (which may be used again for another
  // graph). `nodes`: how many records CUPTI has of it; 0: not known.
  // `surely`: it has some, and the caller waits for the first; else that is known by other launches
  // of this handle.
  void add(uint32_t correlation, uint64_t exec, uint32_t nodes, bool surely);
  // The record of a node, in any order with its launch; also of launches that are not in the
  // window. `graph`: CUPTI's id, 0: it has none, and then one record is all that is waited for.
  void add_record(uint32_t correlation, uint32_t graph);
  // Any GPU work has a record: what was issued before it has most likely run.
  void note_work(uint32_t correlation);

  struct Missing {
    uint64_t awaited;     // launches whose records, or whose last ones, may still come
    uint64_t unfinished;  // of them, those that must have had more
    uint64_t untimed;     // launches without a record, of graphs of which there was none
  };
  Missing missing();

 private:
  struct Launch {
    uint64_t key;  // correlation id
    uint64_t exec;
    uint32_t graph, records, nodes;
    bool told, surely;
  };
  struct Graph {
    uint64_t key;     // CUPTI's id
    uint32_t newest;  // correlation id of its last launch with a record
    uint32_t least;   // records of its other launches in the window; 0: there are none
    bool any;
  };
  struct Exec {
    uint64_t key;  // the driver's handle
    uint32_t with_records;
    uint32_t passed;  // without any, and work that was issued later has run
  };
  // Rows in order of arrival, found by key.
  template <typename Row>
  struct Table {
    PodVector<Row> rows;
    PodVector<uint32_t> slots;  // open addressing: index of a row + 1
    // The key's row, added with zeroes if there is none; null where memory is out.
    Row* find_or_add(uint64_t key);
    void clear();
  };

  void compare_launches();
  bool passed(const Launch& launch) const;

  Table<Launch> launches_;
  Table<Graph> graphs_;
  Table<Exec> execs_;
  uint32_t newest_work_ = 0;  // correlation id
  bool any_work_ = false;
};

}  // namespace gpuprof
