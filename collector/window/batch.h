// SPDX-License-Identifier: Apache-2.0
// From ring buffers to dump chunks, for one window at a time. Drain thread only.
#pragma once

#include <cstdint>

#include "collector/cupti/graph_launches.h"
#include "collector/record/recorder.h"
#include "collector/window/dump_file.h"
#include "collector/window/metrics/window_use.h"
#include "collector/window/own_costs.h"
#include "formats/core/byte_buffer.h"
#include "formats/core/encode.h"

namespace gpuprof {

// Whether what CUPTI delivered is in it, and not what hooks recorded; false of an empty one.
// `committed`: how many records it has, as whoever goes on to read them has found.
bool is_cupti_buffer(const RingChunk& chunk, uint32_t committed);

class WindowCollector final : private NameResolver {
 public:
  WindowCollector();

  // A window begins: nothing is known of its launches.
  // Once there is a ring, before the first window. False: there is no memory.
  bool make_room();
  void begin(uint32_t window, uint64_t begin_ticks);
  // Takes full buffers and gives them back to the pool; with `everything` also what is committed in
  // buffers still in use. `end_ticks` is 0 while the window is open. Returns the records taken. To
  // write a batch takes tenths of a second, and there may be many: `between` is called after each.
  size_t collect(DumpFile& file, bool everything, uint64_t end_ticks,
                 void (*between)(void* context) = nullptr, void* context = nullptr);
  // While `goes_on` the window is open beyond the end_ticks that collect() is given: what the host
  // did since stays for a later call.
  void leave_later(bool goes_on) { leaves_later_ = goes_on; }
  // Writes what is batched.
  void flush(DumpFile& file);
  // Of the window's launches, copies and sets.
  struct Missing {
    uint64_t awaited;     // their GPU records have not come, or not all
    uint64_t unfinished;  // of them, those that must have some, or more
    // Graph launches of which CUPTI has no records: their graphs were instantiated without it, or
    // their nodes are inside conditional ones.
    uint64_t untimed_graph_launches;
    uint64_t perhaps;  // of these, those that may have some: of graphs with conditional nodes
  };
  Missing missing();
  // Whether a launch of the window with this number is missing until its GPU record comes.
  bool expects(uint32_t correlation) const;
  // Launches, copies and sets between these times, if no record of GPU work has come at all; else
  // 0.
  size_t launches_without_records(uint64_t from, uint64_t before);
  // Interns kernel names of launches in buffers still in use, so that they survive SIGKILL.
  void note_function_names();

  // Of the window's records so far; nothing unless metrics are wanted.
  WindowUse& use() { return use_; }
  const NameResolver& names() const { return *this; }  // of what is in the ring
  uint64_t events() const { return events_; }
  uint64_t work() const { return work_; }  // launches, copies, sets, collectives; calls or records
  uint64_t hook_records() const { return hook_records_; }
  // What has been recorded so far costs, also in buffers still in use. Looks at these.
  void note_costs();
  const RecordCosts& costs() const { return costs_; }
  uint64_t stacks() const { return stacks_; }

 private:
  struct Taken {
    uint64_t sequence;  // of the buffer when it was last looked at
    uint32_t records;   // taken from it so far
    uint32_t named;     // looked at for kernel names so far
    uint32_t costed;    // in `costs_` so far
  };
  Taken& taken(uint32_t index, const RingChunk& chunk);
  size_t take(uint32_t index, uint32_t committed, DumpFile& file, uint64_t end_ticks);
  bool belongs(const Record& record, uint64_t end_ticks);
  void note_call(uint32_t correlation);
  void look_for_first_call();
  bool in_base(uint32_t correlation);
  void note(const Record& record);
  void note_launch(const Record& record, uint32_t bit);
  void note_lost(uint32_t correlation);
  void note_launch_without_id(const Record& record);
  uint64_t not_seen(const PodVector<uint64_t>& wanted) const;
  void store_function_name(uint64_t function);
  void add_up_use(const Record& record);
  void note_costs(const RingChunk& chunk, Taken& entry, uint32_t committed);

  std::string_view string(StringId id) const override;
  std::string_view api_name(ApiId api) const override;
  uint32_t api_domain(ApiId api) const override;
  std::string_view function_name(uint64_t function) const override;
  const LaunchShape* launch_shape(uint32_t id) const override;
  std::string_view stack(StringId id) const override;

  BatchEncoder encoder_;
  WindowUse use_;
  bool adds_up_use_ = false;
  bool leaves_later_ = false;
  ByteBuffer body_;
  PodVector<Taken> taken_;  // one per ring buffer
  // Bitmaps over correlation ids from base_: calls recorded, those of them that start GPU work with
  // a record, those that start a graph without, or perhaps with one, and GPU work recorded.
  PodVector<uint64_t> called_;
  PodVector<uint64_t> expected_;
  PodVector<uint64_t> untimed_;
  PodVector<uint64_t> uncertain_;
  PodVector<uint64_t> seen_;
  GraphLaunches graph_launches_;
  // Where CUPTI gives calls no ids: how many records the window's launches must have, and how many
  // of no launch there are.
  uint64_t expected_without_id_ = 0, seen_without_id_ = 0;
  PodVector<uint64_t> named_;  // open-addressed set of functions looked at
  size_t named_count_ = 0;
  bool launches_graph_[kMaxApis] = {};
  size_t batch_records_ = 0;
  uint32_t first_called_ = 0;  // smallest correlation id called in the window; 0: none yet
  bool looked_for_first_ = false;
  uint32_t base_ = 0;  // smallest correlation id of the window, rounded down to 64
  bool have_base_ = false;
  bool have_gpu_work_ = false;
  uint32_t window_ = 0;
  uint64_t begin_ticks_ = 0;
  uint64_t events_ = 0;
  uint64_t hook_records_ = 0;
  RecordCosts costs_;
  uint64_t work_ = 0;
  uint64_t stacks_ = 0;
};

}  // namespace gpuprof
