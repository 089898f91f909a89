// SPDX-License-Identifier: Apache-2.0
// When device work runs. Times are computed, not slept: an op starts when all it depends on has
// ended and its launch has reached the device, and ends its duration later.
//
// An op whose end depends on another process (a Gate) stays unresolved until that is known; so does
// what depends on it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "tests/simcuda/core/port.h"

namespace gpuprof::simcuda {

enum class EngineKind : uint8_t { kNone, kHtoD, kDtoH };

// A copy engine does one copy at a time, whichever is ready first.
class CopyEngine {
 public:
  // The start of the first idle stretch of `duration` at or after `earliest`, which it takes.
  // Stretches that ended before `now` are forgotten.
  uint64_t reserve(uint64_t earliest, uint64_t duration, uint64_t now);

 private:
  struct Busy {
    uint64_t begin;
    uint64_t end;
  };
  std::vector<Busy> busy_;  // by begin
};

struct Op {
  GpuOpInfo info;
  uint64_t duration = 0;
  uint64_t earliest = 0;
  CopyEngine* engine = nullptr;
  std::shared_ptr<Gate> gate;
  std::function<void()> effect;  // what it does to memory, where that is not done at once
  bool traced = false;           // CUPTI wanted its record when it was enqueued
  bool resolved = false;
  uint32_t event_id = 0;  // a marker of cudaEventRecord, reported as a CUDA_EVENT record
  uint64_t event_sync_id = 0;
  std::shared_ptr<Op>
      begin_of;  // an earlier op of the same stream, whose begin is reported as this one's
  std::vector<std::shared_ptr<Op>> waits_for;  // unresolved ones only
  std::shared_ptr<Op> dispatched_after;        // of the same work queue: begins no earlier
};

using OpPtr = std::shared_ptr<Op>;

class OpObserver {
 public:
  virtual void resolved(const Op& op) = 0;

 protected:
  ~OpObserver() = default;
};

// Not thread safe: the core's lock protects it.
class Timeline {
 public:
  explicit Timeline(OpObserver& observer) : observer_(observer) {}

  // Adds `op`, to run after `after` (nullptrs are skipped), and resolves it at once if it can.
  void enqueue(const OpPtr& op, const std::vector<OpPtr>& after);

  // Resolves what can be; true if anything was.
  bool progress();

  size_t pending() const { return pending_.size(); }

 private:
  bool try_resolve(Op& op);

  OpObserver& observer_;
  std::vector<OpPtr> pending_;  // in order of enqueueing, which is an order of dependence
};

}  // namespace gpuprof::simcuda
