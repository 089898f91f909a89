// SPDX-License-Identifier: Apache-2.0
// Which launch of a CUDA graph a node's record belongs to, without CUPTI's correlation id. Up to
// CUDA 13.1 that of a graph launch is wrong from a process's second profiling session on (CUPTI
// release notes, 13.1 update 1).
//
// Launches of one executable graph run one after the other, on whatever stream (cudaGraphLaunch),
// and each runs each node once. So the n-th record of a node belongs to the n-th launch of its
// graph that CUPTI records. The count is unsure after a launch while recording began, a dropped
// record, or a record that began before its launch. Then nothing is told of that graph until the
// host knows that a launch is over: it has waited for its stream, an event behind it, or the
// context.
#pragma once

#include <cstddef>
#include <cstdint>

#include "formats/core/byte_buffer.h"

namespace gpuprof {

// Not thread-safe; times in any one unit. A context and a stream are any number but 0 that is its
// own; no number is both. 0: not known.
class GraphOrder {
 public:
  void clear();
  // Launches that begin from now on are recorded.
  void begin_recording(uint64_t now);
  struct Place {
    uint64_t context, stream;
  };
  // A launch begins: `graph` is CUPTI's id of the executable graph. All are told that begin after
  // clear(), in order of time for each graph. One of before is told as it ends, with `begin` 0.
  // Its number; 0: no memory.
  uint32_t add_launch(uint32_t graph, Place place, uint32_t correlation, uint64_t begin);
  // The call has returned.
  void end_launch(uint32_t number, uint32_t correlation, uint64_t now, bool succeeded);
  // The host waited from `begin` to `end`: what was in the context, in the stream at `begin` was
  // over at `end`.
  void add_context_wait(uint64_t context, uint64_t begin, uint64_t end);
  void add_stream_wait(uint64_t stream, uint64_t begin, uint64_t end);
  // An event is recorded in a stream (0: it is destroyed); where and when it was last, else 0.
  struct EventPlace {
    uint64_t stream, time;
  };
  void add_event(uint64_t event, EventPlace place);
  EventPlace event(uint64_t event) const;
  // The stream is destroyed; its number may be another's.
  void end_stream(uint64_t stream);
  // A record of a node, in order of time for each node: the launch's correlation id; 0: it cannot
  // be told.
  uint32_t launch_of(uint32_t graph, uint64_t node, uint64_t start);
  // Whether the host has waited since recording began, for a context or for a launch: without that
  // nothing is told.
  bool waited() const { return waited_; }
  // Whether the next launch of each graph that was launched since recording began can be told.
  bool counts_all() const;
  bool has_launches() const { return !launches_.empty(); }
  // Some record of work that was over at `now` will not come, or has no time.
  void lose_count(uint64_t now);
  // A graph that may repeat or leave out nodes: nothing is told of it.
  void exclude(uint32_t graph);

 private:
  struct Launch {
    uint64_t begin, end;   // of the call; end 0: it has not returned
    uint64_t first_start;  // of its records so far; 0: none
    uint64_t over;         // the host knew then that it was over; 0: never
    uint64_t after;        // all launches of its graph before it were over then; 0: not known
    uint32_t correlation;
    uint32_t next;            // launch of the same graph, as number; 0: none yet
    uint32_t next_in_stream;  // of those that are not known to be over, as number
  };
  struct Graph {
    uint64_t key;
    uint64_t since;         // records that began before do not count
    uint32_t first, last;   // launch, as number
    uint32_t base;          // the launch of a node's first record since, as number; 0: the first
    uint32_t count;         // how often it was counted anew
    uint32_t seen, fresh;   // launch that count_anew() has come to; the last one with `after` there
    uint32_t newest_fresh;  // the last one with `after` of all; 0: none
    bool sure, excluded;
  };
  struct Node {
    uint64_t key;
    uint32_t count;     // of its graph, when `launch` was set
    uint32_t launch;    // of its newest record, as number
    uint64_t previous;  // start of that record
  };
  struct Stream {
    uint64_t key, context;
    uint32_t first, last;  // launch in it that is not known to be over, as number
  };
  struct Context {
    uint64_t key, waited;  // `waited`: the end of the first wait that began while recording
  };
  struct Event {
    uint64_t key;
    EventPlace place;
  };
  // Rows in order of arrival, found by key.
  template <typename Row>
  struct Table {
    PodVector<Row> rows;
    PodVector<uint32_t> slots;  // open addressing: index of a row + 1
    Row* find_or_add(uint64_t key);
    const Row* find(uint64_t key) const;
    void clear();
    uint32_t& slot_of(uint64_t key);
  };

  bool comes_first(const Graph& graph, uint64_t context, uint64_t begin);
  void add_to_stream(Place place, uint32_t number);
  void finish(Stream& stream, uint64_t begin, uint64_t end);
  bool fits(const Launch& launch, const Graph& graph, uint64_t start) const;
  bool count_anew(Graph& graph, uint64_t start);
  uint32_t next_launch(const Graph& graph, const Node& node) const;
  bool is_right(uint32_t number, const Graph& graph, const Node& node, uint64_t start) const;

  PodVector<Launch> launches_;
  Table<Graph> graphs_;
  Table<Node> nodes_;
  Table<Stream> streams_;
  Table<Context> contexts_;
  Table<Event> events_;
  uint64_t recording_ = 0;  // since when; 0: not yet
  bool waited_ = false;     // for what can be counted from, since then
  uint64_t lost_ = 0;       // the newest lose_count(): only launches after it tell anything
};

}  // namespace gpuprof
