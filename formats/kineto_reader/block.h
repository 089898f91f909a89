// SPDX-License-Identifier: Apache-2.0
// What one stretch of a trace file holds, as one thread reads it: events whose names, shapes and
// rows are numbers in tables of the stretch itself.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "formats/kineto_reader/interned.h"
#include "formats/trace/trace.h"

namespace gpuprof::kineto {

// Texts by number; 0 is the empty one.
class TextPool {
 public:
  TextPool();
  // `fresh` says whether the text was not there before.
  uint32_t intern(std::string_view text, bool& fresh);
  uint32_t intern(std::string_view text) {
    bool fresh = false;
    return intern(text, fresh);
  }
  std::string_view operator[](uint32_t index) const { return texts_[index]; }
  size_t size() const { return texts_.size(); }
  void clear();

 private:
  std::string& storage_for(size_t size);

  NumberTable table_;
  std::vector<std::string_view> texts_;
  std::deque<std::string> storage_;  // what texts_ look into
  size_t in_use_ = 0;                // of storage_
};

// Where an event is drawn in the file. Numbers where pid and tid are such (as 7 or "7"), else
// texts.
struct Row {
  LaneType type;
  uint32_t device, context, stream;  // of GPU rows
  int64_t pid, tid;
  uint32_t pid_text, tid_text;  // in Block::texts; not 0: pid or tid is this text and no number
  bool operator==(const Row&) const = default;
};

enum class Fault : uint8_t {
  event,     // not JSON; skipped
  escape,    // a backslash that is none of JSON's
  utf8,      // a text that is not UTF-8
  value,     // NaN, Infinity and the like
  time,      // an event without a time; skipped
  duration,  // an event that ends before it begins
  length,    // an event without a duration
  phase,     // an event of a phase that is not read
  range,     // an event whose time or duration is more than can be held; skipped
  id,        // a correlation id that is more than can be held: work is not joined to its call
  count_
};
inline constexpr size_t kFaults = static_cast<size_t>(Fault::count_);

struct FaultCount {
  uint64_t count = 0;
  uint64_t first = 0;  // offset in the text of the first one
};
using FaultCounts = std::array<FaultCount, kFaults>;

void note(FaultCounts& counts, Fault fault, uint64_t offset, uint64_t count = 1);

// A "s" or "f" event that is not the arrow from a launch to its kernel.
struct FlowEnd {
  int64_t time;
  uint64_t id;
  uint32_t row;
  uint32_t category;  // text
  bool start;
};

// A metadata event: the name of a process, the place of a row.
struct RowFact {
  enum What : uint8_t { process_name, process_label, process_sort, thread_name, thread_sort } what;
  uint32_t row;
  uint32_t text;
  int64_t number;
};

struct CounterPoint {
  int64_t time;
  double value;
  uint32_t row;
  uint32_t name, key, category;  // texts
};

struct RowStep {
  uint32_t row;
  Step step;
};

struct BlockEvent {
  int64_t begin, end;
  uint64_t external_id;  // of the operator that a call or GPU work names; 0: none
  ShapeIndex shape;      // this and the next two: numbers in the block
  uint32_t row;
  uint32_t extra;
  uint32_t correlation;
};

struct Block {
  std::vector<BlockEvent> events;
  std::vector<Shape> shapes;       // name, detail, label, ...: numbers in `texts`
  std::vector<EventExtra> extras;  // args likewise; entry 0 is all zero
  std::vector<Row> rows;
  TextPool texts;
  std::vector<FlowEnd> flows;
  std::vector<RowFact> facts;
  std::vector<CounterPoint> counters;
  std::vector<RowStep> steps;                            // that are no events: of our own exports
  int64_t span_begin = INT64_MAX, span_end = INT64_MIN;  // of spans of category Trace
  FaultCounts faults{};

  void clear();  // keeps the memory
};

}  // namespace gpuprof::kineto
