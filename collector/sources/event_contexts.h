// SPDX-License-Identifier: Apache-2.0
// The CUDA contexts in which something was launched whose time events tell. Hooks add them, and the
// drain thread does the rest.
#pragma once

#include <cstdint>

#include "collector/sources/event_clock.h"
#include "collector/sources/event_driver.h"

namespace gpuprof {

struct EventContext {
  void* handle;
  unsigned long long id;  // of no other context of the process's life
  int device;
  bool gone;  // its events went with it, or tell nothing any more
  EventClock clock;
};

// The place of the calling thread's current context `handle`; -1: none is current, the driver
// refuses, or there is no room. Any thread.
int place_of_context(const EventDriver& driver, void* handle);
// Places below it are taken, and stay so. Any thread.
uint32_t event_context_count();

// ---- for the drain thread ----

EventContext& event_context(uint32_t place);
// Makes the context current on the calling thread. False: it is gone, or not to be had.
bool enter_context(const EventDriver& driver, EventContext& context);

}  // namespace gpuprof
