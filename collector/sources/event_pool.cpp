// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/event_pool.h"

#include "collector/base/fork.h"
#include "collector/base/os.h"

namespace gpuprof {
namespace {

Mutex g_lock;

void forget_event_pool() { g_lock.unlock(); }
GPUPROF_FORGET_IN_CHILD(forget_event_pool);

}  // namespace

bool EventPool::prepare() {
  if (pairs_.size() != kMostPairs) {
    if (!pairs_.resize(kMostPairs) || !recorded_.reserve(kMostPairs) ||
        !looked_at_.reserve(kMostPairs)) {
      release();
      return false;
    }
    for (uint32_t& first : free_) first = kNone;
    for (Queue& queue : queues_) queue = Queue{};
    empty_ = kNone;
    used_ = 0;
  }
  const LockGuard guard(g_lock);
  open_ = true;
  return true;
}

uint16_t EventPool::queue_of(uint16_t context, uint64_t stream, bool make) {
  uint16_t empty = kNoQueue;
  const uint64_t start = stream * 0x9e3779b97f4a7c15ull >> 32;
  for (uint16_t i = 0; i < kMostQueues; ++i) {
    const auto place = static_cast<uint16_t>((start + i) % kMostQueues);
    const Queue& queue = queues_[place];
    if (queue.taken + queue.waiting == 0) {
      if (empty == kNoQueue) empty = place;
    } else if (queue.stream == stream && queue.context == context) {
      return place;
    }
  }
  if (make && empty != kNoQueue)
    queues_[empty] = {stream, context, 0, 0, kUntilNextLook, kNone, kNone};
  return make ? empty : kNoQueue;
}

void EventPool::pop(Queue& queue) {
  EventPair& first = pairs_[queue.first];
  first.waits = false;
  --queue.waiting;
  queue.first = first.behind;
  if (queue.first == kNone) queue.last = kNone;
}

void EventPool::leave_queue(uint32_t pair) {
  EventPair& each = pairs_[pair];
  if (each.queue == kNoQueue) return;
  Queue& queue = queues_[each.queue];
  if (each.state == EventPairState::taken) {
    --queue.taken;
  } else if (each.waits && queue.first == pair) {
    pop(queue);
  } else if (each.waits) {  // two threads' calls in one stream
    uint32_t before = queue.first;
    while (pairs_[before].behind != pair) before = pairs_[before].behind;
    pairs_[before].behind = each.behind;
    if (queue.last == pair) queue.last = before;
    --queue.waiting;
    each.waits = false;
  }
  each.queue = kNoQueue;
}

EventPool::Waiting EventPool::waiting(uint16_t context, uint64_t stream) {
  const LockGuard guard(g_lock);
  const uint16_t place = queue_of(context, stream, false);
  if (place == kNoQueue) return {kNone, kNone};
  return {queues_[place].first, queues_[place].last};
}

void EventPool::pass(uint32_t pair) {
  const LockGuard guard(g_lock);
  while (pairs_[pair].waits) pop(queues_[pairs_[pair].queue]);
}

uint32_t EventPool::take(uint16_t context, uint64_t stream, bool moves) {
  const LockGuard guard(g_lock);
  if (!open_) return kNone;
  const uint16_t place = queue_of(context, stream, true);
  if (place == kNoQueue) return kNone;
  Queue& queue = queues_[place];
  if (moves) queue.since_moved = 0;
  const bool moved = queue.since_moved < kUntilNextLook;
  if (queue.taken + queue.waiting >= kMostWaiting && !moved) return kFull;
  ++queue.since_moved;
  uint32_t pair = free_[context];
  if (pair != kNone) {
    free_[context] = pairs_[pair].next;
  } else if (empty_ != kNone) {
    pair = empty_;
    empty_ = pairs_[pair].next;
  } else if (used_ < pairs_.size()) {
    pair = used_++;
  } else {
    return kNone;
  }
  pairs_[pair].context = context;
  pairs_[pair].stream = stream;
  pairs_[pair].queue = place;
  pairs_[pair].waits = false;
  pairs_[pair].state = EventPairState::taken;
  ++queue.taken;
  return pair;
}

bool EventPool::give_back(uint32_t pair) {
  const LockGuard guard(g_lock);
  EventPair& each = pairs_[pair];
  if (each.state == EventPairState::orphan) return false;
  leave_queue(pair);
  each.state = EventPairState::free;
  each.next = free_[each.context];
  free_[each.context] = pair;
  return true;
}

void EventPool::give_back_without(uint32_t pair) {
  const LockGuard guard(g_lock);
  leave_queue(pair);
  make_empty(pair);
}

void EventPool::make_empty(uint32_t pair) {
  EventPair& each = pairs_[pair];
  each.begin = each.end = nullptr;
  each.state = EventPairState::none;
  each.next = empty_;
  empty_ = pair;
}

bool EventPool::hand_over(uint32_t pair) {
  const LockGuard guard(g_lock);
  EventPair& each = pairs_[pair];
  if (each.state == EventPairState::orphan) return false;
  each.state = EventPairState::recorded;
  each.waits = true;
  each.behind = kNone;
  Queue& queue = queues_[each.queue];
  --queue.taken;
  ++queue.waiting;
  (queue.last == kNone ? queue.first : pairs_[queue.last].behind) = pair;
  queue.last = pair;
  return recorded_.push_back(pair);  // there is room for all
}

PodVector<uint32_t>& EventPool::recorded() {
  const LockGuard guard(g_lock);
  looked_at_.clear();
  (void)looked_at_.append(recorded_.begin(), recorded_.size());
  return looked_at_;
}

// A pair that was given back may have been handed over again: it is at two places then. New ones
// are behind those that were looked at.
void EventPool::forget_read() {
  const LockGuard guard(g_lock);
  const size_t looked = looked_at_.size();
  size_t kept = 0;
  for (size_t i = 0; i < recorded_.size(); ++i) {
    const bool read = i < looked && looked_at_[i] == kNone;
    if (!read) recorded_[kept++] = recorded_[i];
  }
  recorded_.truncate(kept);
  looked_at_.clear();
}

void EventPool::forget_free(uint16_t context) {
  const LockGuard guard(g_lock);
  while (free_[context] != kNone) {
    const uint32_t pair = free_[context];
    free_[context] = pairs_[pair].next;
    make_empty(pair);
  }
}

bool EventPool::uses(uint16_t context) {
  const LockGuard guard(g_lock);
  for (uint32_t i = 0; i < used_; ++i) {
    const EventPair& each = pairs_[i];
    if (each.context != context) continue;
    if (each.state != EventPairState::none && each.state != EventPairState::free) return true;
  }
  return false;
}

void EventPool::end(PodVector<uint32_t>& out) {
  const LockGuard guard(g_lock);
  open_ = false;
  for (uint32_t i = 0; i < used_; ++i) {
    EventPair& each = pairs_[i];
    each.queue = kNoQueue;
    each.waits = false;
    if (each.state == EventPairState::free || each.state == EventPairState::recorded) {
      (void)out.push_back(i);
    } else if (each.state == EventPairState::taken) {
      each.state = EventPairState::orphan;
    }
  }
  for (uint32_t& first : free_) first = kNone;
  for (Queue& queue : queues_) queue = Queue{};
  recorded_.clear();
}

void EventPool::release() {
  pairs_.release();
  recorded_.release();
  looked_at_.release();
}

}  // namespace gpuprof
