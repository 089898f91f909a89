// SPDX-License-Identifier: Apache-2.0
// GPUPROF_BUDGET: costs in, what to leave out. And what records cost.
#include "collector/window/own_costs.h"

#include <gtest/gtest.h>

#include "collector/record/shed.h"
#include "formats/core/own_time.h"

namespace gpuprof {
namespace {

constexpr double kSecond = 1e9;

// Percent of a second, in the order of ShedKind: none, samples, operators, stacks, calls, waits.
uint32_t chosen(const KindCosts& percent, double budget, uint32_t shed = 0) {
  KindCosts costs;
  for (size_t i = 0; i < kShedKinds; ++i) costs[i] = percent[i] / 100 * kSecond;
  return choose_shed(costs, kSecond, budget, shed);
}

uint32_t bits(std::initializer_list<ShedKind> kinds) {
  uint32_t out = 0;
  for (const ShedKind kind : kinds) out |= shed_bit(kind);
  return out;
}

TEST(ShedChoice, NothingWithinTheBudget) {
  EXPECT_EQ(chosen({0.5, 0.5, 0.5, 0.2, 0.2, 0.1}, 2), 0u);
  EXPECT_EQ(chosen({0, 0, 0, 0, 0, 0}, 0.1), 0u);
}

TEST(ShedChoice, TheCostliestGoesFirstAndNoMoreThanNeeded) {
  EXPECT_EQ(chosen({0.5, 1, 20, 3, 8, 1}, 15), bits({ShedKind::operators}));
  EXPECT_EQ(chosen({0.5, 1, 20, 3, 8, 1}, 13), bits({ShedKind::operators, ShedKind::calls}));
  EXPECT_EQ(chosen({0.5, 1, 20, 3, 8, 1}, 6), bits({ShedKind::operators, ShedKind::calls}));
  EXPECT_EQ(chosen({0.5, 1, 20, 3, 8, 1}, 3),
            bits({ShedKind::operators, ShedKind::calls, ShedKind::stacks}));
}

TEST(ShedChoice, WaitsGoLastHoweverCostly) {
  EXPECT_EQ(chosen({0.5, 0, 2, 0, 3, 30}, 31), bits({ShedKind::calls, ShedKind::operators}));
  EXPECT_EQ(chosen({0.5, 0, 2, 0, 3, 30}, 33), bits({ShedKind::calls}));
  EXPECT_EQ(chosen({0.5, 0, 2, 0, 3, 30}, 10),
            bits({ShedKind::calls, ShedKind::operators, ShedKind::waits}));
}

TEST(ShedChoice, WhatIsLeftOutAlreadyIsNotChosenAgain) {
  EXPECT_EQ(chosen({0, 0, 5, 0, 4, 0}, 2, bits({ShedKind::operators})), bits({ShedKind::calls}));
  EXPECT_EQ(chosen({0, 0, 5, 0, 0, 0}, 2, bits({ShedKind::operators})), 0u);
}

TEST(ShedChoice, WhatTakesLittleStaysThoughTheRestIsTooMuch) {
  EXPECT_EQ(chosen({30, 0.09, 0.09, 0, 0.11, 0}, 2), bits({ShedKind::calls}));
  EXPECT_EQ(chosen({30, 0, 0, 0, 0, 0}, 2), 0u);
}

TEST(OwnCosts, RecordsCostByTheirKind) {
  Record record{};
  const auto units = [&](Kind kind) {
    record.kind = kind;
    return record_units(record);
  };
  EXPECT_EQ(units(Kind::launch), 1u);
  EXPECT_EQ(units(Kind::nvtx_range), 3u);
  EXPECT_EQ(units(Kind::module), 150u);
  EXPECT_EQ(units(Kind::gpu_kernel), 0u) << "CUPTI's threads make it";
  EXPECT_EQ(units(Kind::sample), 0u) << "the sampling thread makes it";
  EXPECT_EQ(units(Kind::op), 10u);
  record.framework.input_dims = 1;
  EXPECT_EQ(units(Kind::op), 20u);
}

TEST(OwnCosts, StacksAndBuffersCostWhatWasMeasured) {
  RecordCosts costs;
  Record stack{}, call{};
  stack.kind = Kind::stack;
  stack.api = call.api = kNoApi;
  stack.stack.ticks = 700;
  call.kind = Kind::launch;
  costs.add(stack, call);
  costs.add(call, call);
  EXPECT_EQ(costs.ticks[static_cast<size_t>(ShedKind::stacks)], 700u);
  EXPECT_EQ(costs.units[0], 1u);
  call.kind = Kind::heap;
  costs.add(stack, call);
  EXPECT_EQ(costs.ticks[0], 700u) << "of a sampled allocation on the host, which stays";
  const Record cupti = own_time_record(OwnTime::callback, 1, 100, 150);
  costs.add(cupti, cupti);
  const Record mark = own_time_record(OwnTime::step, 1, 100, 5000);
  costs.add(mark, mark);
  EXPECT_EQ(costs.ticks[0], 750u) << "a step's mark may open a window: once";
}

TEST(OwnCosts, OfAStretchWithLostRecordsAndFreshBuffers) {
  constexpr auto kCalls = static_cast<size_t>(ShedKind::calls);
  constexpr auto kOperators = static_cast<size_t>(ShedKind::operators);
  RecordCosts before, now;
  before.records[kCalls] = before.units[kCalls] = 1000;
  now = before;
  now.records[kCalls] += 300, now.units[kCalls] += 300;
  now.records[kOperators] += 100, now.units[kOperators] += 1000;
  now.buffer_ticks += 4000;
  now.ticks[0] += 500;
  const KindCosts whole = now.since(before, 0, 20, 2);
  EXPECT_DOUBLE_EQ(whole[kCalls], 300 * 20 + 1500);
  EXPECT_DOUBLE_EQ(whole[kOperators], 1000 * 20 + 500);
  EXPECT_DOUBLE_EQ(whole[0], 250);
  const KindCosts lossy = now.since(before, 400, 20, 2);
  EXPECT_DOUBLE_EQ(lossy[kCalls], 2 * 300 * 20 + 1500);
  EXPECT_DOUBLE_EQ(now.since(now, 10, 20, 2)[0], 200) << "of no known kind";
}

}  // namespace
}  // namespace gpuprof
