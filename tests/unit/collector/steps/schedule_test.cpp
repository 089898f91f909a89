// SPDX-License-Identifier: Apache-2.0
#include "collector/steps/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace gpuprof {
namespace {

ScheduleSpec make_spec(const char* text) {
  ScheduleSpec spec;
  SettingError error;
  EXPECT_TRUE(parse_schedule(text, spec, error)) << error.text;
  return spec;
}

// Drives a schedule over the steps and writes what happens as text: one letter for each step's
// phase
// (. waiting, w warmup, A active, - done), "[n" before the step where window n begins and "]n"
// where it ended. `cuts` are steps during which the window is cut.
std::string trace(const char* text, uint64_t steps, std::vector<uint64_t> cuts = {},
                  std::vector<uint64_t> boundaries = {}) {
  Schedule schedule(make_spec(text));
  EXPECT_EQ(schedule.phase(), Phase::waiting);
  if (boundaries.empty()) {
    for (uint64_t i = 0; i < steps; ++i) boundaries.push_back(i);
  }
  std::string out;
  Phase before = Phase::waiting;
  for (const uint64_t index : boundaries) {
    const Transition change = schedule.advance(index);
    EXPECT_EQ(change.before, before);
    EXPECT_EQ(change.after, schedule.phase());
    if (change.window_ends) out += "]" + std::to_string(change.ended_window);
    if (change.window_begins) out += "[" + std::to_string(change.window);
    if (change.window_ends && !change.window_begins) {
      EXPECT_EQ(change.window, change.ended_window);
    }
    out += ".wA-"[static_cast<int>(change.after)];
    if (std::find(cuts.begin(), cuts.end(), index) != cuts.end()) {
      schedule.cut();
      out += "!";
    }
    before = schedule.phase();
  }
  return out;
}

struct Case {
  const char* name;
  const char* schedule;
  uint64_t steps;
  std::vector<uint64_t> cuts;
  std::vector<uint64_t> boundaries;
  const char* expected;
};

class ScheduleTable : public testing::TestWithParam<Case> {};

TEST_P(ScheduleTable, gives_these_phases) {
  const Case& c = GetParam();
  EXPECT_EQ(trace(c.schedule, c.steps, c.cuts, c.boundaries), c.expected);
}

const Case kCases[] = {
    {"default_schedule",
     "skip_first=10,wait=0,warmup=2,active=10,repeat=1",
     25,
     {},
     {},
     "..........ww[0AAAAAAAAAA]0---"},
    {"everything_from_the_start",
     "skip_first=0,wait=0,warmup=0,active=3,repeat=1",
     5,
     {},
     {},
     "[0AAA]0--"},
    {"waits_in_each_cycle",
     "skip_first=1,wait=2,warmup=1,active=2,repeat=2",
     13,
     {},
     {},
     "...w[0AA]0..w[1AA]1--"},
    {"first_wait_left_out",
     "skip_first=1,skip_first_wait=1,wait=2,warmup=1,active=2,repeat=2",
     11,
     {},
     {},
     ".w[0AA]0..w[1AA]1--"},
    {"first_wait_left_out_twice_as_long",
     "skip_first=0,skip_first_wait=1,wait=5,warmup=0,active=1,repeat=2",
     8,
     {},
     {},
     "[0A]0.....[1A]1-"},
    {"windows_back_to_back",
     "skip_first=0,wait=0,warmup=0,active=2,repeat=3",
     7,
     {},
     {},
     "[0AA]0[1AA]1[2AA]2-"},
    {"for_ever",
     "skip_first=0,wait=1,warmup=1,active=1,repeat=0",
     9,
     {},
     {},
     ".w[0A]0.w[1A]1.w[2A"},
    {"cut_goes_on_with_next_cycle",
     "skip_first=0,wait=1,warmup=1,active=3,repeat=2",
     11,
     {3},
     {},
     ".w[0AA!..w[1AAA]1-"},
    {"cut_in_last_window_is_the_end",
     "skip_first=0,wait=0,warmup=1,active=3,repeat=1",
     6,
     {2},
     {},
     "w[0AA!---"},
    {"cut_in_warmup_opens_no_window",
     "skip_first=0,wait=0,warmup=2,active=2,repeat=2",
     9,
     {1},
     {},
     "ww!..ww[1AA]1-"},
    {"cut_while_waiting_changes_nothing",
     "skip_first=2,wait=0,warmup=0,active=2,repeat=1",
     5,
     {0},
     {},
     ".!.[0AA]0-"},
    {"cut_when_done_changes_nothing",
     "skip_first=0,wait=0,warmup=0,active=1,repeat=1",
     3,
     {1},
     {},
     "[0A]0-!-"},
    {"cut_back_to_back",
     "skip_first=0,wait=0,warmup=0,active=3,repeat=2",
     7,
     {0},
     {},
     "[0A!..[1AAA]1-"},
    {"jump_over_a_window",
     "skip_first=2,wait=0,warmup=1,active=2,repeat=1",
     0,
     {},
     {0, 1, 5, 6},
     "..--"},
    {"jump_into_a_window",
     "skip_first=2,wait=0,warmup=1,active=4,repeat=1",
     0,
     {},
     {0, 5, 6, 7},
     ".[0AA]0-"},
    {"jump_out_of_a_window",
     "skip_first=0,wait=3,warmup=0,active=2,repeat=2",
     0,
     {},
     {0, 3, 6, 7, 8},
     ".[0A]0..[1A"},
    {"jump_from_window_to_window",
     "skip_first=0,wait=3,warmup=0,active=2,repeat=0",
     0,
     {},
     {3, 9, 24},
     "[0A]0[1A]1[4A"},
    {"jump_after_cut",
     "skip_first=0,wait=1,warmup=0,active=2,repeat=3",
     0,
     {1},
     {1, 8, 9},
     "[0A![2A]2-"},
};

INSTANTIATE_TEST_SUITE_P(Schedule, ScheduleTable, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

TEST(Schedule, default_records_steps_12_to_21) {
  const Schedule schedule{ScheduleSpec{}};
  EXPECT_EQ(schedule.first_step(0), 12u);
  EXPECT_EQ(schedule.last_step(0), 21u);
}

TEST(Schedule, steps_of_later_windows) {
  const Schedule schedule(
      make_spec("skip_first=5,skip_first_wait=1,wait=7,warmup=2,active=3,repeat=0"));
  EXPECT_EQ(schedule.first_step(0), 7u);
  EXPECT_EQ(schedule.last_step(0), 9u);
  EXPECT_EQ(schedule.first_step(1), 19u);
  EXPECT_EQ(schedule.last_step(1), 21u);
}

// The schedule written out step by step, with no arithmetic.
std::vector<std::pair<Phase, uint64_t>> naive_phases(const ScheduleSpec& spec, uint64_t steps) {
  std::vector<std::pair<Phase, uint64_t>> out;
  for (uint32_t i = 0; i < spec.skip_first; ++i) out.push_back({Phase::waiting, 0});
  for (uint64_t cycle = 0; out.size() < steps; ++cycle) {
    if (spec.repeat != 0 && cycle == spec.repeat) break;
    const bool no_wait = cycle == 0 && spec.skip_first_wait != 0;
    for (uint32_t i = 0; i < spec.wait && !no_wait; ++i) out.push_back({Phase::waiting, cycle});
    for (uint32_t i = 0; i < spec.warmup; ++i) out.push_back({Phase::warmup, cycle});
    for (uint32_t i = 0; i < spec.active; ++i) out.push_back({Phase::active, cycle});
  }
  while (out.size() < steps) out.push_back({Phase::done, spec.repeat});
  out.resize(steps);
  return out;
}

ScheduleSpec random_spec(std::mt19937& random) {
  auto below = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  ScheduleSpec spec;
  spec.skip_first = below(6);
  spec.skip_first_wait = below(2);
  spec.wait = below(5);
  spec.warmup = below(4);
  spec.active = 1 + below(5);
  spec.repeat = below(4);
  return spec;
}

TEST(Schedule, agrees_with_a_naive_model_under_jumps_and_cuts) {
  std::mt19937 random(20240611);
  constexpr uint64_t kSteps = 60;
  for (int round = 0; round < 3000; ++round) {
    const ScheduleSpec spec = random_spec(random);
    char text[256];
    format_schedule(spec, text, sizeof(text));
    SCOPED_TRACE(text);
    const auto naive = naive_phases(spec, kSteps);
    Schedule schedule(spec);
    std::vector<bool> abandoned(kSteps + 1);  // by window
    bool open = false;
    uint64_t open_window = 0;
    for (uint64_t index = 0; index < kSteps; index += random() % 8 == 0 ? 1 + random() % 15 : 1) {
      auto [phase, window] = naive[index];
      uint64_t by_spec = 0;
      ASSERT_EQ(schedule.phase_of(index, &by_spec), phase);
      ASSERT_EQ(by_spec, window);
      if (phase != Phase::done && abandoned[window]) {
        phase = spec.repeat != 0 && window + 1 == spec.repeat ? Phase::done : Phase::waiting;
      }
      const Transition change = schedule.advance(index);
      ASSERT_EQ(change.after, phase) << "step " << index;
      const bool ends = open && (phase != Phase::active || window != open_window);
      const bool begins = phase == Phase::active && (!open || window != open_window);
      ASSERT_EQ(change.window_ends, ends) << "step " << index;
      ASSERT_EQ(change.window_begins, begins) << "step " << index;
      ASSERT_EQ(change.ended_window, ends ? open_window : change.ended_window);
      ASSERT_EQ(change.window, begins ? window : change.window);
      open = phase == Phase::active;
      if (open) {
        open_window = window;
        ASSERT_LE(schedule.first_step(window), index);
        ASSERT_GE(schedule.last_step(window), index);
      }
      if (random() % 12 == 0 && (phase == Phase::active || phase == Phase::warmup)) {
        schedule.cut();
        abandoned[window] = true;
        open = false;
      }
    }
  }
}

}  // namespace
}  // namespace gpuprof
