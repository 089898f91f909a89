// SPDX-License-Identifier: Apache-2.0
#include "collector/window/early_dump.h"

#include "collector/record/session.h"
#include "collector/window/ready_command.h"
#include "formats/core/early_window.h"

namespace gpuprof {
namespace {

constexpr double kLeastSeconds = 2;

double seconds_of(const Window& window) {
  // A mark that ends it may be of before it was opened.
  return static_cast<double>(static_cast<int64_t>(window.end_ticks - window.opened_ticks)) /
         (session().clock.ticks_per_ns * 1e9);
}

}  // namespace

// Both as the dump has them, in 32 bits: of a window without steps `last_step` is first_step - 1.
static uint32_t whole_steps(const Window& window) {
  const auto end = static_cast<uint32_t>(window.last_step + 1);
  const auto begin = static_cast<uint32_t>(window.first_step);
  return end > begin ? end - begin : 0;
}

bool has_whole_step(const Window& window) { return whole_steps(window) != 0; }

void EarlyDump::keep(DumpFile& file, const Kept& ended, bool worth) {
  const bool shorter = dump_.exists && seconds_of(ended.window) < kLeastSeconds;
  if (!worth || shorter) {
    forget_dumped_losses(ended.losses);
    return file.discard();
  }
  drop();
  outcome_ = file.keep(dump_);
  error_ = file.error();
  kept_ = ended;
  any_ = true;
}

bool EarlyDump::says_more_than(const Window& window) const {
  const uint32_t steps = whole_steps(window);
  return steps == 0 ||
         (any_ && window.partial && steps < kFewSteps && whole_steps(kept_.window) > steps);
}

void EarlyDump::drop() {
  if (any_) forget_dumped_losses(kept_.losses);
  dump_.discard();
  any_ = false;
}

bool EarlyDump::leave() {
  if (!any_) return false;
  any_ = false;
  if (outcome_ == DumpOutcome::complete) error_ = dump_.publish();
  if (outcome_ == DumpOutcome::complete && error_) outcome_ = DumpOutcome::cut;
  if (outcome_ == DumpOutcome::complete) run_ready_command(dump_.path);
  note_window_totals(kept_.window, kept_.totals, {outcome_, error_, dump_.path});
  return true;
}

}  // namespace gpuprof
