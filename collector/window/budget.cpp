// SPDX-License-Identifier: Apache-2.0
#include "collector/window/budget.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "collector/base/log.h"
#include "collector/cupti/cupti_session.h"
#include "collector/record/ring.h"
#include "collector/record/session.h"
#include "collector/record/shed.h"
#include "collector/samples/native_samples.h"
#include "collector/samples/samples.h"
#include "collector/torch/operators.h"
#include "collector/window/losses.h"
#include "collector/window/window_dump.h"
#include "formats/core/early_window.h"
#include "formats/core/wire.h"

namespace gpuprof {
namespace {

constexpr double kLookNs = 100e6, kLongestNs = 1e9;
constexpr double kShortestNs = 10e6;  // of a shorter window most is what comes once

bool is_set() { return session().config.budget > 0 && !session().loads_data; }

double ns_between(uint64_t from, uint64_t to) {
  return to > from ? static_cast<double>(to - from) / session().clock.ticks_per_ns : 0;
}

uint64_t boundaries() {
  return ring()->header->steps.used.load(std::memory_order_relaxed) / sizeof(uint64_t);
}

uint32_t ppm(double part, double whole) {
  return whole > 0 ? static_cast<uint32_t>(std::min(4e9, 1e6 * part / whole)) : 0;
}

void write(Drain& drain) {
  const Budget& b = drain.budget;
  drain.body.clear();
  WireWriter out(drain.body);
  out.uint(1, static_cast<uint64_t>(session().config.budget * 1e4));
  for (uint32_t i = 0; i < b.shed_count; ++i) {
    const size_t mark = out.open(2);
    out.uint(1, static_cast<uint32_t>(b.shed[i].kind));
    out.uint(2, b.shed[i].since_ticks);
    out.uint(3, b.shed[i].cost_ppm);
    out.close(mark);
  }
  out.uint(3, b.since_ticks);
  out.uint(4, b.until_ticks);
  out.uint(5, static_cast<uint64_t>(b.cost_ns));
  if (out.ok()) drain.file.write(ChunkKind::budget, drain.body);
}

// What was recorded since the last look, up to `ticks`, and what it cost.
void measure(Drain& drain, uint64_t ticks) {
  Budget& b = drain.budget;
  drain.collector.note_costs();
  const RecordCosts& now = drain.collector.costs();
  const uint64_t lost = all_losses()[static_cast<size_t>(Loss::buffer_full)];
  b.costs = now.since(b.seen, lost - std::min(lost, b.seen_lost), drain.hook_cost.ns_per_record,
                      session().clock.ticks_per_ns);
  b.seen = now;
  b.seen_lost = lost;
  const uint64_t samples_ns = samples_cpu_ns();
  b.costs[static_cast<size_t>(ShedKind::samples)] +=
      static_cast<double>(samples_ns - std::min(samples_ns, b.seen_samples_ns));
  b.seen_samples_ns = samples_ns;
  const auto cupti_ns = static_cast<uint64_t>(ns_between(0, cupti_overhead_ticks()));
  b.costs[0] += static_cast<double>(cupti_ns - std::min(cupti_ns, b.seen_cupti_ns));
  b.seen_cupti_ns = cupti_ns;
  b.elapsed_ns = ns_between(b.look_ticks, ticks);
  b.look_ticks = ticks;
  b.look_boundaries = boundaries();
  b.cost_ns += sum_of(b.costs);
  b.until_ticks = ticks;
}

// "API calls that start no GPU work 6.1 %, the rest 0.4 %"
void describe_costs(const Budget& b, uint32_t kinds, char* out, size_t size) {
  size_t used = 0;
  out[0] = '\0';
  for (uint32_t kind = 0; kind < kShedKinds; ++kind) {
    if (!(kinds >> kind & 1) || used >= size) continue;
    const int more = std::snprintf(out + used, size - used, "%s%s %.1f %%", used ? ", " : "",
                                   kShedTexts[kind].text, 100 * b.costs[kind] / b.elapsed_ns);
    if (more > 0) used += static_cast<size_t>(more);
  }
}

void say(const Budget& b, uint32_t kinds, const char* until) {
  char text[400];
  describe_costs(b, kinds, text, sizeof text);
  log_line(LogLevel::warn,
           "recording cost %.1f %% of %.0f ms, and GPUPROF_BUDGET allows %.4g %%: no longer "
           "recorded, %s: %s",
           100 * sum_of(b.costs) / b.elapsed_ns, b.elapsed_ns / 1e6, session().config.budget, until,
           text);
}

// Once a window, where all that can be left out is.
void say_if_still_over(Budget& b) {
  const double percent = 100 * sum_of(b.costs) / b.elapsed_ns;
  if (b.said_over || percent <= session().config.budget) return;
  b.said_over = true;
  log_line(LogLevel::warn,
           "recording cost %.1f %% of %.0f ms, and GPUPROF_BUDGET allows %.4g %%: nothing more of "
           "weight can be left out; GPUPROF_PRESET=light, or a larger budget",
           percent, b.elapsed_ns / 1e6, session().config.budget);
}

void note_shed(Budget& b, uint32_t kinds, uint64_t since, bool before) {
  for (uint32_t kind = 1; kind < kShedKinds; ++kind) {
    if (!(kinds >> kind & 1) || b.shed_count == kShedKinds) continue;
    const uint32_t cost = before ? 0 : std::max(1u, ppm(b.costs[kind], b.elapsed_ns));
    b.shed[b.shed_count++] = {static_cast<ShedKind>(kind), since, cost};
  }
}

bool is_early() { return is_early_window(session().window.number); }

// False: a step is being marked. A thread that is about to wait for this one may have its lock.
bool shed(Drain& drain, uint32_t kinds) {
  Session& s = session();
  Budget& b = drain.budget;
  if (!s.step_lock.try_lock()) return false;
  uint64_t since = 0;
  if (window_is_open()) {
    g_shed.fetch_or(kinds, std::memory_order_relaxed);
    apply_hook_flags();
    since = ticks_after_stores();
    if (is_shed(ShedKind::operators)) stop_recording_operators();
  }
  s.step_lock.unlock();
  if (since == 0) return true;  // it has ended meanwhile
  if (is_shed(ShedKind::samples)) {
    samples_window_ends();
    native_samples_window_ends();
  }
  cupti_leave_out_shed_calls();
  note_shed(b, kinds, since, false);
  b.window_bits |= kinds;
  const Budget decided = b;
  measure(drain, since);  // on a busy machine many calls were recorded since the look
  b.cost_ns = 0;
  b.since_ticks = since;
  b.written = false;
  say(decided, kinds, is_early() ? "in this window" : "in this window and those after it");
  return true;
}

bool look_is_due(const Budget& b, uint64_t ticks) {
  const double elapsed = ns_between(b.look_ticks, ticks);
  // Marks at its begin and at its end.
  return elapsed >= kLongestNs || (elapsed >= kLookNs && boundaries() >= b.look_boundaries + 2);
}

void decide_for_later_windows(const Budget& b) {
  const uint32_t off = g_shed.load(std::memory_order_relaxed);
  const uint32_t kinds = choose_shed(b.costs, b.elapsed_ns, session().config.budget, off);
  if (kinds == 0) return;
  g_shed.fetch_or(kinds, std::memory_order_relaxed);
  say(b, kinds, "in the windows after this one");
}

}  // namespace

void budget_window_begins(Drain& drain) {
  if (!is_set()) return;
  Budget& b = drain.budget;
  const uint64_t begin = session().window.begin_ticks;
  b = Budget{};
  b.look_ticks = b.since_ticks = begin;
  b.look_boundaries = boundaries();
  b.seen_samples_ns = kFirstSamplesNs;  // once a window
  b.seen_lost = all_losses()[static_cast<size_t>(Loss::buffer_full)];
  note_shed(b, g_shed.load(std::memory_order_relaxed), begin, true);
  write(drain);
  b.written = true;
}

void budget_tick(Drain& drain, uint64_t ticks) {
  if (!is_set()) return;
  Budget& b = drain.budget;
  if (b.wanted == 0 && look_is_due(b, ticks)) {
    measure(drain, ticks);
    const uint32_t off = g_shed.load(std::memory_order_relaxed);
    b.wanted = choose_shed(b.costs, b.elapsed_ns, session().config.budget, off);
    if (b.wanted == 0) say_if_still_over(b);
  }
  if (b.wanted && shed(drain, b.wanted)) b.wanted = 0;
  if (b.written) return;
  write(drain);
  b.written = true;
}

void budget_window_ends(Drain& drain, uint64_t end_ticks, bool for_good) {
  if (!is_set()) return;
  Budget& b = drain.budget;
  const bool had_look = b.until_ticks != 0;
  if (end_ticks > b.look_ticks) measure(drain, end_ticks);
  const bool decides = for_good && !had_look && !is_early();
  if (decides && b.elapsed_ns >= kShortestNs) decide_for_later_windows(b);
  write(drain);
}

void budget_window_is_over(Drain& drain, const Window& window) {
  const uint32_t bits = std::exchange(drain.budget.window_bits, 0);
  if (bits == 0 || !is_early_window(window.number)) return;
  g_shed.fetch_and(~bits, std::memory_order_relaxed);
  cupti_take_back_shed_calls();
}

}  // namespace gpuprof
