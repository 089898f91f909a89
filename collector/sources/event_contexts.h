// SPDX-License-Identifier: Apache-2.0
// The CUDA contexts in which something was launched whose time events tell. Hooks add them, and the
// drain thread does the rest.
#pragma once

#include <cstdint>

#include "collector/sources/event_clock.h"
#include "collector/sources/event_driver.h"
#include "formats/core/record.h"

namespace gpuprof {

struct EventContext {
  void* handle;           // null: the place is vacant
  unsigned long long id;  // of no other context of the process's life
  int device;
  bool gone;  // its events went with it, or tell nothing any more
  EventClock clock;
};

// The context in which a call does its work, current on the calling thread while this lives. Where
// none is, a call of the runtime binds its device's primary context; until then that one is lent,
// and nothing is left bound, since the runtime takes what it finds. One that does not exist yet is
// not made: to make it is the call's own work.
class ContextOfCall {
 public:
  ContextOfCall(const EventDriver& driver, const Record& record);
  ~ContextOfCall() {
    if (lent_) driver_.set_context(nullptr);
  }
  ContextOfCall(const ContextOfCall&) = delete;
  ContextOfCall& operator=(const ContextOfCall&) = delete;
  void* handle() const { return handle_; }  // null: none

 private:
  const EventDriver& driver_;
  void* handle_ = nullptr;
  bool lent_ = false;
};

// The place of the calling thread's current context `handle`; -1: none is current, the driver
// refuses, or there is no room. Any thread.
int place_of_context(const EventDriver& driver, void* handle);
// Places below it are taken, or were. Any thread.
uint32_t event_context_count();

// ---- for the drain thread ----

EventContext& event_context(uint32_t place);
// Makes the context current on the calling thread. False: it is gone, or not to be had.
bool enter_context(const EventDriver& driver, EventContext& context);
// Another context may have the place of one that is destroyed, of which nothing is left.
void vacate_context(const EventDriver& driver, uint32_t place);

}  // namespace gpuprof
