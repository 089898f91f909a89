// SPDX-License-Identifier: Apache-2.0
#include "tests/simcuda/cupti/history_faults.h"

#include "tests/simcuda/cupti/switches.h"

namespace gpuprof::simcuda {

void Faults::session_begins() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++session_;
  work_in_session_ = kernels_in_session_ = 0;
}

void Faults::session_ends() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (switches().dead_after_empty_session && work_in_session_ == 0) dead_ = true;
}

void Faults::clock_registered() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++clocks_;
}

uint32_t Faults::graph_correlation(const GpuOpInfo& op) {
  if (first_launch_ == 0) first_launch_ = op.correlation;
  Launches& known = graphs_[op.graph_id];
  if (known.last != op.correlation) {
    known.previous = known.last != 0 ? known.last : op.correlation;
    known.last = op.correlation;
  }
  if (session_ < 2) return op.correlation;
  switch (switches().graph_ids) {
    case GraphIds::stale: return first_launch_;
    case GraphIds::previous: return known.previous;
    case GraphIds::zero: return 0;
    case GraphIds::right: break;
  }
  return op.correlation;
}

bool Faults::tell(const GpuOpInfo& op, Told& out) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++work_in_session_;
  if (dead_) return false;
  out = Told{op.graph_id != 0 ? graph_correlation(op) : op.correlation};
  if (op.kind != GpuOpKind::kKernel) return true;
  ++kernels_;
  ++kernels_in_session_;
  const uint64_t again = clocks_ > 1 ? clocks_ - 1 : 0;
  out.default_clock = switches().foreign_clock && kernels_in_session_ <= again;
  const uint64_t zero = switches().callback_zero_every;
  const uint64_t limit = switches().buffers_run_out_after;
  const bool run_out = limit != 0 && kernels_ > limit;
  out.reversed_times = run_out && kernels_ == limit + 1;
  out.no_times =
      (run_out && !out.reversed_times) || (zero != 0 && clocks_ != 0 && kernels_ % zero == 0);
  return true;
}

}  // namespace gpuprof::simcuda
