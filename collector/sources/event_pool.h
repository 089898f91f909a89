// SPDX-License-Identifier: Apache-2.0
// Pairs of CUDA events, of which so many exist at most: each thread takes one around a call, and
// the drain thread gives it back. A lock is held for a few stores; nothing is called
// meanwhile.
#pragma once

#include <cstdint>

#include "formats/core/byte_buffer.h"
#include "formats/core/record.h"

namespace gpuprof {

enum class EventPairState : uint8_t {
  none,      // without events
  free,      // has them
  taken,     // around a call that is being made
  orphan,    // likewise, and the window has ended: who took it destroys them
  recorded,  // both are recorded
};

struct EventPair {
  void* begin;
  void* end;
  uint64_t stream;  // its number by the driver
  uint32_t next;    // of those that are free, of a context or without events
  uint32_t behind;  // the next one in its stream, while it waits
  uint16_t context;
  uint16_t queue;
  bool waits;  // in its stream, as far as is known
  EventPairState state;
  Record record;  // of the call
};

class EventPool {
 public:
  static constexpr uint32_t kMostPairs = 8192;
  static constexpr uint32_t kNone = ~uint32_t{0};
  static constexpr uint32_t kFull = kNone - 1;
  // So many pairs may wait in a stream that does not move. A stream of the driver's holds some
  // 1,022 entries; then launches wait on the host, for ever where the same thread is to let the
  // stream go on. A launch is one entry, three with its events: a program that enqueues up to 510
  // behind such a block still has room.
  static constexpr uint32_t kMostWaiting = 256;
  // So many pairs are taken without another look once the stream was seen to move: with those above
  // they fill its entries, and then each launch waits until one is over. So a thread that is as far
  // ahead as it can be has its times.
  static constexpr uint32_t kUntilNextLook = 80;
  static constexpr uint16_t kMostContexts = 16;

  // The memory for all of them, and a window begins. False: there is none.
  bool prepare();
  // One of this context for this stream, without events if none is free. kNone: all are taken, or
  // no window is open. kFull: the stream has kMostWaiting, unless it is seen that it `moves`.
  uint32_t take(uint16_t context, uint64_t stream, bool moves);
  // Of those that wait in a stream, the first and the last; kNone: none does.
  struct Waiting {
    uint32_t first, last;
  };
  Waiting waiting(uint16_t context, uint64_t stream);
  // This one has happened, hence those before it in its stream, too.
  void pass(uint32_t pair);
  // Its events may be recorded anew. False, here and below: the window has ended, and the pair is
  // an orphan.
  bool give_back(uint32_t pair);
  bool hand_over(uint32_t pair);          // both events are recorded
  void give_back_without(uint32_t pair);  // its events are destroyed
  // Those handed over so far, in that order. Whoever is done with one gives it back, and sets its
  // place to kNone. Drain thread.
  PodVector<uint32_t>& recorded();
  void forget_read();  // those at whose place is kNone now. Drain thread
  // The context is gone, and the events of its free pairs with it.
  void forget_free(uint16_t context);
  // Whether a pair of the context waits to be read, or is around a call. Drain thread.
  bool uses(uint16_t context);
  EventPair& operator[](uint32_t pair) { return pairs_[pair]; }
  // The window has ended: pairs with events that nobody uses, in `out`; those that are taken become
  // orphans.
  void end(PodVector<uint32_t>& out);
  void release();

 private:
  // What is in a stream of pairs. One with nothing is any stream's.
  struct Queue {
    uint64_t stream;
    uint16_t context;
    uint32_t taken, waiting;
    uint32_t since_moved;  // taken since then
    uint32_t first, last;
  };
  static constexpr uint16_t kMostQueues = 128, kNoQueue = 0xffff;
  uint16_t queue_of(uint16_t context, uint64_t stream, bool make);
  void leave_queue(uint32_t pair);
  void make_empty(uint32_t pair);  // it has no events any more; with the lock
  void pop(Queue& queue);

  PodVector<EventPair> pairs_;
  Queue queues_[kMostQueues];
  PodVector<uint32_t> recorded_, looked_at_;
  uint32_t free_[kMostContexts];
  uint32_t empty_;  // once had events
  uint32_t used_;   // of pairs_
  bool open_;
};

}  // namespace gpuprof
