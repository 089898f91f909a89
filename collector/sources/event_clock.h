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
  // Makes the stream and the first reading. False: the driver refuses.
  bool begin(const EventDriver& driver, double ticks_per_ns);
  // Another reading. False: the GPU did not come to it in time, the clock is as before.
  bool add(const EventDriver& driver);
  void end(const EventDriver& driver);
  void forget();  // without a call of the driver: the context is gone

  // Two readings lie far enough apart for times between and around them.
  bool is_known() const { return known_; }
  // Nanoseconds of the device at which `event` happened, which was recorded at `ticks`. False: the
  // driver does not say.
  bool device_ns(const EventDriver& driver, void* event, uint64_t ticks, uint64_t& out) const;
  uint64_t to_ticks(uint64_t device_ns) const { return clock_.to_ticks(device_ns); }
  // Times before the first reading are as far from it as the readings from each other, at most, or
  // a little more: each of the two is off by what the clock says.
  uint64_t error_ticks() const { return 3 * clock_.error_ticks(); }

 private:
  bool read(const EventDriver& driver, AnchoredClock::Anchor& best);

  AnchoredClock clock_;
  uint64_t stream_ = 0;
  void* reference_ = nullptr;  // the newest event whose time is known
  void* next_ = nullptr;
  uint64_t reference_ns_ = 0;
  uint64_t reference_ticks_ = 0;
  uint64_t first_ticks_ = 0;  // of the first reading
  double ticks_per_ns_ = 0;
  bool known_ = false;
};

}  // namespace gpuprof
