// SPDX-License-Identifier: Apache-2.0
#include "collector/window/early_dump.h"

#include "collector/record/ring.h"
#include "collector/record/session.h"
#include "collector/window/ready_command.h"

namespace gpuprof {
namespace {

constexpr double kLeastSeconds = 2;

double seconds_of(const Window& window) {
  return static_cast<double>(window.end_ticks - window.begin_ticks) /
         (session().clock.ticks_per_ns * 1e9);
}

}  // namespace

// Both as the dump has them, in 32 bits: of a window without steps `last_step` is first_step - 1.
bool has_whole_step(const Window& window) {
  return static_cast<uint32_t>(window.last_step + 1) > static_cast<uint32_t>(window.first_step);
}

void EarlyDump::begin() {
  for (uint32_t i = 0; i < kLossKinds; ++i) {
    losses_before_[i] = loss_counter(*ring()->header, i).load(std::memory_order_relaxed);
  }
}

void EarlyDump::keep(DumpFile& file, const Window& window, const WindowTotals& totals,
                     uint32_t failures, bool worth) {
  for (uint32_t i = 0; i < kLossKinds; ++i) {
    auto& counter = loss_counter(*ring()->header, i);
    counter.fetch_sub(counter.load(std::memory_order_relaxed) - losses_before_[i]);
  }
  const bool shorter = dump_.exists && seconds_of(window) < kLeastSeconds;
  if (!worth || shorter) return file.discard();
  dump_.discard();
  outcome_ = file.keep(dump_);
  error_ = file.error();
  window_ = window;
  totals_ = totals;
  failures_ = failures;
  any_ = true;
}

void EarlyDump::drop() {
  dump_.discard();
  any_ = false;
}

bool EarlyDump::leave() {
  if (!any_) return false;
  any_ = false;
  if (outcome_ == DumpOutcome::complete) error_ = dump_.publish();
  if (outcome_ == DumpOutcome::complete && error_) outcome_ = DumpOutcome::cut;
  if (outcome_ == DumpOutcome::complete) run_ready_command(dump_.path);
  note_window_totals(window_, totals_, {outcome_, error_, dump_.path});
  return true;
}

}  // namespace gpuprof
