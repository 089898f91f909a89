// SPDX-License-Identifier: Apache-2.0
// When events of one CUDA context happened, in ticks. An event's time is known relative to another
// event's only. So now and then a reference event is recorded in a stream that has nothing else to
// do: it happens between its record and the moment in which a query finds it done. Drain thread,
// with the context current and the thread in the mode of RelaxedCapture.
#pragma once

#include <cstdint>

#include "collector/base/anchored_clock.h"
#include "collector/sources/event_driver.h"

namespace gpuprof {

class EventClock {
 public:
  // A reading, of which the first makes stream and events. If the GPU does not come to it in time,
  // the next call goes on with it: the GPU's work queues may be full, or another process's turn.
  void read(const EventDriver& driver, double ticks_per_ns);
  void end(const EventDriver& driver);
  void lose_events();  // the context is gone, and they with it; what is known stays

  // device_ns() can tell.
  bool is_ready() const { return ready_; }
  // Two readings lie far enough apart for times between and around them.
  bool is_known() const { return known_; }
  // Nanoseconds of the device at which `event` happened, which was recorded at `ticks`. False: the
  // driver does not say.
  bool device_ns(const EventDriver& driver, void* event, uint64_t ticks, uint64_t& out) const;
  uint64_t to_ticks(uint64_t device_ns) const { return clock_.to_ticks(device_ns); }
  // How far a time lies before the first reading, by how far the readings lie from each other. Up
  // to 1 it is as good as others; more readings make it less.
  double stretch(uint64_t device_ns) const;
  // Each of the two readings is off by what the clock says.
  uint64_t error_ticks(double stretch = 1) const {
    return static_cast<uint64_t>((1 + 2 * stretch) * static_cast<double>(clock_.error_ticks()));
  }

 private:
  bool prepare(const EventDriver& driver);
  bool wait_for_next(const EventDriver& driver, AnchoredClock::Anchor& anchor);

  AnchoredClock clock_;
  uint64_t stream_ = 0;
  void* reference_ = nullptr;  // the newest event whose time is known
  void* next_ = nullptr;
  bool pending_ = false;  // next_ is recorded, and was not seen to have happened
  bool ready_ = false;    // reference_ has happened
  uint64_t reference_ns_ = 0;
  uint64_t reference_ticks_ = 0;
  uint64_t first_ticks_ = 0;  // of the first reading
  uint64_t first_ns_ = 0, newest_ns_ = 0;
  bool known_ = false;
};

}  // namespace gpuprof
