// SPDX-License-Identifier: Apache-2.0
// Schedule, triggers and the off switch together: which steps are recorded.
#include "collector/steps/window_plan.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

namespace gpuprof {
namespace {

struct Action {
  enum What { trigger, off, on, cut } what;
  uint64_t at;  // done during this step
  uint64_t first = 0, steps = 0;
  bool accepted = true;
};

struct Case {
  const char* name;
  const char* schedule;
  bool armed;
  uint64_t steps;
  std::vector<Action> actions;
  const char* expected;  // as in schedule_test.cpp; "/n": window n ended for a triggered one,
                         // "xn": window n is left out
};

std::string left_out(const Transition& change) {
  std::string out;
  for (uint32_t i = 0; i < change.left_out; ++i) {
    out += "x" + std::to_string(change.left_out_window[i]);
  }
  return out;
}

// How GoogleTest names a case.
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

void act(WindowPlan& plan, const Action& action) {
  switch (action.what) {
    case Action::trigger:
      EXPECT_EQ(plan.trigger(action.first, action.steps, action.at), action.accepted);
      return;
    case Action::off: return plan.switch_off(UINT64_MAX);
    case Action::on: return plan.switch_off(action.first);
    case Action::cut: return plan.cut();
  }
}

std::string trace(const Case& c) {
  ScheduleSpec spec;
  SettingError error;
  EXPECT_TRUE(parse_schedule(c.schedule, spec, error)) << error.text;
  WindowPlan plan(spec, c.armed);
  std::string out;
  Phase before = Phase::waiting;
  for (uint64_t index = 0; index < c.steps; ++index) {
    const Transition change = plan.advance(index);
    EXPECT_EQ(change.before, before) << "step " << index;
    if (change.window_ends) {
      out += (change.interrupted ? "/" : "]") + std::to_string(change.ended_window);
    }
    out += left_out(change);
    if (change.window_begins) out += "[" + std::to_string(change.window);
    out += ".wA-"[static_cast<int>(change.after)];
    before = change.after;
    for (const Action& action : c.actions) {
      if (action.at != index) continue;
      act(plan, action);
      if (action.what != Action::trigger) out += "!";
      before = plan.phase();
    }
  }
  return out;
}

class WindowPlanTable : public testing::TestWithParam<Case> {};

TEST_P(WindowPlanTable, records_these_steps) { EXPECT_EQ(trace(GetParam()), GetParam().expected); }

constexpr const char* kShort = "skip_first=2,wait=0,warmup=1,active=3,repeat=1";
constexpr const char* kForEver = "skip_first=0,wait=2,warmup=1,active=2,repeat=0";

const Case kCases[] = {
    {"no_trigger_is_the_schedule", kShort, false, 8, {}, "..w[0AAA]0--"},
    {"armed_records_nothing", kShort, true, 8, {}, "........"},
    {"armed_and_triggered", kShort, true, 9, {{Action::trigger, 1, 4, 3}}, "...w[0AAA]0.."},
    {"twice",
     kShort,
     true,
     12,
     {{Action::trigger, 1, 3, 2}, {Action::trigger, 6, 8, 2}},
     "..w[0AA]0..w[1AA]1.."},
    {"back_to_back_when_asked_after_the_first",
     kShort,
     true,
     8,
     {{Action::trigger, 0, 2, 2}, {Action::trigger, 2, 4, 2, false}, {Action::trigger, 4, 5, 1}},
     ".w[0AA]0.[1A]1.."},
    {"a_newer_trigger_replaces_one_that_has_not_begun",
     kShort,
     true,
     9,
     {{Action::trigger, 0, 3, 2}, {Action::trigger, 1, 5, 2}},
     "....w[0AA]0.."},
    {"too_late", kShort, true, 5, {{Action::trigger, 3, 3, 2, false}}, "....."},
    {"after_the_schedule_is_done",
     kShort,
     false,
     12,
     {{Action::trigger, 7, 9, 2}},
     "..w[0AAA]0--w[1AA]1-"},
    {"before_the_schedule",
     "skip_first=5,warmup=1,active=2,repeat=1",
     false,
     10,
     {{Action::trigger, 0, 2, 2}},
     ".w[0AA]0.w[1AA]1--"},
    {"in_place_of_a_scheduled_window",
     kShort,
     false,
     10,
     {{Action::trigger, 0, 2, 5}},
     ".w[0Ax1AAAA]0---"},
    {"interrupts_a_scheduled_window",
     kShort,
     false,
     10,
     {{Action::trigger, 1, 4, 3}},
     "..w[0A/0[1AAA]1---"},
    {"begins_where_a_scheduled_window_ends",
     kShort,
     false,
     10,
     {{Action::trigger, 1, 6, 2}},
     "..w[0AAA]0[1AA]1--"},
    {"the_schedule_goes_on",
     kForEver,
     false,
     14,
     {{Action::trigger, 4, 6, 1}},
     "..w[0AA]0w[1A]1w[2AA]2..w[3A"},
    {"cut_ends_the_trigger",
     kShort,
     true,
     9,
     {{Action::trigger, 0, 2, 4}, {Action::cut, 3}},
     ".w[0AA!....."},
    {"cut_of_a_scheduled_window_keeps_the_trigger",
     kShort,
     false,
     12,
     {{Action::trigger, 0, 8, 2}, {Action::cut, 4}},
     "..w[0AA!--w[1AA]1--"},
    {"off", kForEver, false, 12, {{Action::off, 1}}, "..!.........."},
    {"off_in_a_window", kForEver, false, 12, {{Action::off, 3}}, "..w[0A!........"},
    {"off_drops_a_trigger",
     kShort,
     true,
     8,
     {{Action::trigger, 0, 4, 2}, {Action::off, 2}},
     "...!....."},
    {"no_trigger_while_off",
     kShort,
     true,
     6,
     {{Action::off, 0}, {Action::trigger, 1, 3, 1, false}},
     ".!....."},
    {"on_again_leaves_out_the_cycle_in_progress",
     kForEver,
     false,
     15,
     {{Action::off, 0}, {Action::on, 5, 8}},
     ".!.....!......w[2AA"},
    {"on_again_before_a_cycle",
     kForEver,
     false,
     11,
     {{Action::off, 0}, {Action::on, 2, 5}},
     ".!..!....w[1AA]1."},
    {"armed_off_on_trigger",
     kShort,
     true,
     9,
     {{Action::off, 0}, {Action::on, 1, 3}, {Action::trigger, 2, 5, 2}},
     ".!.!..w[0AA]0.."},
    {"a_trigger_does_not_wait_for_the_schedule",
     kShort,
     true,
     9,
     {{Action::off, 0}, {Action::on, 1, 8}, {Action::trigger, 2, 4, 2}},
     ".!.!.w[0AA]0..."},
    {"a_triggered_window_that_the_schedule_resumes_in",
     kForEver,
     false,
     15,
     {{Action::off, 0}, {Action::on, 1, 6}, {Action::trigger, 2, 4, 5}},
     ".!.!.w[0AAAAx2A]0...w[3AA"},
};

INSTANTIATE_TEST_SUITE_P(WindowPlan, WindowPlanTable, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

// The phases of `count` steps from `index` on.
std::string advance(WindowPlan& plan, uint64_t index, uint64_t count) {
  std::string out;
  for (uint64_t i = index; i < index + count; ++i) {
    const Transition change = plan.advance(i);
    if (change.window_ends) out += "]" + std::to_string(change.ended_window);
    out += left_out(change);
    if (change.window_begins) out += "[" + std::to_string(change.window);
    out += ".wA-"[static_cast<int>(change.after)];
  }
  return out;
}

WindowPlan plan_of(const char* schedule, bool armed = false) {
  ScheduleSpec spec;
  SettingError error;
  EXPECT_TRUE(parse_schedule(schedule, spec, error)) << error.text;
  return WindowPlan(spec, armed);
}

TEST(WindowPlan, OfTheWholeProgramNoStepBeginsOrEndsAWindow) {
  WindowPlan plan = plan_of("all");
  EXPECT_EQ(advance(plan, 0, 40), std::string(40, '.'));
  EXPECT_FALSE(plan.trigger(50, 2, 40));
}

TEST(WindowPlan, BeginsAnewWhereWhatWasCountedWereNoSteps) {
  for (const uint64_t before : {1, 3, 5, 7}) {
    WindowPlan plan = plan_of(kShort);
    advance(plan, 0, before);
    plan.restart();
    EXPECT_EQ(advance(plan, 0, 8), "..w[0AAA]0--") << before;
  }
}

// Windows of three steps, with two between them.
constexpr const char* kClose = "skip_first=0,wait=1,warmup=1,active=3,repeat=0";

// The window is to begin with step 2, and is put off there.
struct PutOff {
  const char* name;
  uint64_t resumed;      // at this step; kNever: not at all
  const char* until;     // the phases of the steps from 3 on until then
  uint64_t steps;        // that follow
  const char* expected;  // their phases
};
constexpr uint64_t kNever = UINT64_MAX;

void PrintTo(const PutOff& c, std::ostream* out) { *out << c.name; }

const PutOff kPutOff[] = {
    {"has_as_many_steps_and_its_number", 3, "", 8, "[0AAA]0w[1AAA]1."},
    {"the_next_window_is_left_out_where_it_has_its_steps", 5, "..", 9, "[0AAx1A]0...w[2AA"},
    {"until_the_next_begins_is_left_out", kNever, "", 8, "...wx0[1AAA]1."},
};

class WindowThatIsPutOff : public testing::TestWithParam<PutOff> {};

TEST_P(WindowThatIsPutOff, records_these_steps) {
  const PutOff& c = GetParam();
  WindowPlan plan = plan_of(kClose);
  EXPECT_EQ(advance(plan, 0, 3), ".w[0A");
  plan.postpone();
  EXPECT_TRUE(plan.postponed());
  uint64_t next = 3;
  if (c.resumed != kNever) {
    EXPECT_EQ(advance(plan, next, c.resumed - next), c.until);
    next = c.resumed;
    plan.resume(next);
  }
  EXPECT_EQ(advance(plan, next, c.steps), c.expected);
  EXPECT_FALSE(plan.postponed());
}

INSTANTIATE_TEST_SUITE_P(WindowPlan, WindowThatIsPutOff, testing::ValuesIn(kPutOff),
                         [](const auto& info) { return info.param.name; });

// A trigger that is asked for before the window of step 2 is put off, or after. The window begins
// anew with step 3, where a trigger has not begun by then.
struct PutOffAndTriggered {
  const char* name;
  bool asked_before;
  uint64_t first, resumed;
  uint64_t steps;        // from 3 on
  const char* expected;  // their phases
};

void PrintTo(const PutOffAndTriggered& c, std::ostream* out) { *out << c.name; }

const PutOffAndTriggered kPutOffAndTriggered[] = {
    {"asked_before_and_begins_later", true, 9, 3, 10, "[0AAA]0w[1AA]1[2AA]2w[3A"},
    {"asked_after_and_begins_later", false, 9, 3, 10, "[0AAA]0w[1AA]1[2AA]2w[3A"},
    {"asked_before_and_interrupts", true, 5, 3, 5, "[0AA]0[1AA]1[2A"},
    {"asked_before_and_begins_first", true, 4, kNever, 5, "wx0[1AA]1w[2A"},
    {"asked_after_and_begins_first", false, 4, kNever, 5, "wx0[1AA]1w[2A"},
    {"begins_with_the_next_one", true, 7, kNever, 7, "...wx0x1[2AA]2."},
};

class WindowThatIsPutOffBesideATrigger : public testing::TestWithParam<PutOffAndTriggered> {};

TEST_P(WindowThatIsPutOffBesideATrigger, records_these_steps) {
  const PutOffAndTriggered& c = GetParam();
  WindowPlan plan = plan_of(kClose);
  if (c.asked_before) {
    EXPECT_TRUE(plan.trigger(c.first, 2, 0));
  }
  EXPECT_EQ(advance(plan, 0, 3), ".w[0A");
  plan.postpone();
  if (!c.asked_before) {
    EXPECT_TRUE(plan.trigger(c.first, 2, 2));
  }
  EXPECT_TRUE(plan.postponed());
  if (c.resumed != kNever) plan.resume(c.resumed);
  EXPECT_EQ(advance(plan, 3, c.steps), c.expected);
  EXPECT_FALSE(plan.postponed());
}

INSTANTIATE_TEST_SUITE_P(WindowPlan, WindowThatIsPutOffBesideATrigger,
                         testing::ValuesIn(kPutOffAndTriggered),
                         [](const auto& info) { return info.param.name; });

TEST(WindowPlan, OfWhatWereNoStepsNoWindowBeginsAnew) {
  WindowPlan plan = plan_of(kShort);
  EXPECT_EQ(advance(plan, 0, 4), "..w[0A");
  plan.postpone();
  plan.restart();
  EXPECT_FALSE(plan.postponed());
  EXPECT_EQ(advance(plan, 0, 8), "..w[0AAA]0--");
}

TEST(WindowPlan, ATriggerMovesIntoTheCountThatBeginsAnew) {
  WindowPlan plan = plan_of(kShort, true);
  EXPECT_EQ(advance(plan, 0, 91), std::string(91, '.'));
  ASSERT_TRUE(plan.trigger(95, 2, 90));
  EXPECT_TRUE(plan.restart(90, 1));
  EXPECT_EQ(plan.trigger_first(), 6u) << "five steps ahead, as before";
  EXPECT_EQ(advance(plan, 1, 10), "....w[0AA]0...");
  EXPECT_FALSE(plan.restart(10, 1)) << "it was recorded";
  EXPECT_FALSE(plan.ask_again(1));
}

TEST(WindowPlan, ATriggeredWindowThatIsDroppedBeginsAnew) {
  WindowPlan plan = plan_of(kShort, true);
  ASSERT_TRUE(plan.trigger(3, 2, 0));
  EXPECT_EQ(advance(plan, 0, 4), "..w[0A");
  plan.cut();
  EXPECT_FALSE(plan.restart(3, 1));
  ASSERT_TRUE(plan.ask_again(1));
  EXPECT_EQ(advance(plan, 1, 7), ".w[0AA]0...");
  EXPECT_FALSE(plan.ask_again(8));
  plan.switch_off(UINT64_MAX);
  EXPECT_FALSE(plan.ask_again(9));
}

TEST(WindowPlan, StepsCountedBeforeTheirSourceWasKnownDoNotPassOverTheWindow) {
  for (const uint64_t counted : {0, 1}) {
    WindowPlan plan = plan_of(kShort);
    plan.begin_after(counted);
    EXPECT_EQ(advance(plan, 0, 8), "..w[0AAA]0--") << "they lie before it";
  }
  for (const uint64_t counted : {2, 4, 100}) {
    WindowPlan plan = plan_of(kShort);
    plan.begin_after(counted);
    EXPECT_EQ(advance(plan, counted, 9), "...w[0AAA]0--") << counted;
    EXPECT_EQ(plan.first_step(0), counted + 4);
    EXPECT_EQ(plan.last_step(0), counted + 6);
  }
}

}  // namespace
}  // namespace gpuprof
