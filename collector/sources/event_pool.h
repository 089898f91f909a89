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
  uint16_t context;
  EventPairState state;
  Record record;  // of the call
};

class EventPool {
 public:
  static constexpr uint32_t kMostPairs = 8192;
  static constexpr uint32_t kNone = ~uint32_t{0};
  static constexpr uint16_t kMostContexts = 16;

  // The memory for all of them, and a window begins. False: there is none.
  bool prepare();
  // One of this context, without events if none is free; kNone: all are taken, or no window is
  // open.
  uint32_t take(uint16_t context);
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
  PodVector<EventPair> pairs_;
  PodVector<uint32_t> recorded_, looked_at_;
  uint32_t free_[kMostContexts];
  uint32_t empty_;  // once had events
  uint32_t used_;   // of pairs_
  bool open_;
};

}  // namespace gpuprof
