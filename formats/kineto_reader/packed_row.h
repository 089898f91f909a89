// SPDX-License-Identifier: Apache-2.0
// The events of a trace's rows, packed, between the file and the table they end in. Their place in
// the table is known only behind the last of many.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "formats/io/varints.h"
#include "formats/kineto_reader/block.h"

namespace gpuprof::kineto {

// Events of one row: runs of them that are in order, about ten bytes an event.
class PackedRow {
 public:
  // One that is earlier than the event before begins a run.
  void add(const BlockEvent& event);
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 private:
  friend class RunReader;
  friend class LaneEvents;
  struct Piece {
    std::unique_ptr<uint8_t[]> bytes;
    uint32_t used, size;
  };
  using Run = std::vector<Piece>;

  // What the next event's numbers are differences from.
  struct Before {
    int64_t begin, end;
    uint64_t external_id;
    uint32_t correlation, extra;
  };

  static Piece& room_in(Run& run);

  std::vector<Run> runs_;
  Before before_{};
  size_t size_ = 0;
};

// Reads a run and frees it on the way.
class RunReader {
 public:
  explicit RunReader(PackedRow::Run run) : run_(std::move(run)) {}
  // False: there is no more.
  bool next();
  const BlockEvent& event() const { return event_; }

 private:
  PackedRow::Run run_;
  size_t piece_ = 0;  // the next one
  Varints left_;      // of the one before it
  PackedRow::Before before_{};
  BlockEvent event_{};
};

// The events of rows that are one lane, in its order, without their rows. Of equal ones the row
// given first, then the earlier run, comes first.
class LaneEvents {
 public:
  void add(PackedRow row);
  // The next event; null: there is none. Valid until the next call.
  const BlockEvent* next();

 private:
  bool later(uint32_t a, uint32_t b) const;

  std::vector<RunReader> runs_;
  std::vector<uint32_t> heap_;  // of runs that have an event; the first in order is on top
  bool begun_ = false;
};

}  // namespace gpuprof::kineto
