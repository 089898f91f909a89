// SPDX-License-Identifier: Apache-2.0
// A GPU that lowers its clock: the cause gpu_throttled and its finding.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/unit/support/run_maker.h"
#include "tools/analysis/findings.h"
#include "tools/analysis/report.h"

namespace gpuprof::test {
namespace {

const analysis::Verdict* throttled(const analysis::Report& report) {
  for (const analysis::Verdict& each : report.verdict) {
    if (each.cause == analysis::Cause::gpu_throttled) return &each;
  }
  return nullptr;
}

TEST(Throttled, CostsWhatTheLowerClockTakesOfTheComputeTime) {
  RunMaker run(10);
  // In a quarter of the samples at 60 % of the highest clock; idle clocks are no one's fault.
  run.add_counter(Counter::sm_clock, {1980, 1188, 1980, 345, 1980, 1188, 1980, 1980});
  run.add_counter(Counter::throttle_reasons, {0, 0x40, 0, 0x1, 0, 0x44, 0, 0});
  const analysis::Report report = analysis::make_report(load(run.dump()));
  const analysis::Verdict* const verdict = throttled(report);
  ASSERT_TRUE(verdict);
  const double lost = report.breakdown_pct[0] * 0.25 * 0.4;
  EXPECT_NEAR(verdict->share_pct, lost, 0.01);
  EXPECT_NEAR(verdict->saves_pct, lost, 0.01);
  ASSERT_FALSE(verdict->evidence.empty());
  EXPECT_EQ(verdict->evidence[0],
            "GPU 0: clock lowered in 25 % of samples (power cap, temperature (hardware)), 1188 MHz "
            "of 1980");
}

// The clock and the reasons of 20 samples, each seed another length and place of what is lowered.
void add_clocks(RunMaker& run, int seed, int lowered, uint64_t reason) {
  std::vector<uint64_t> clocks(20, 1980), reasons(20, 0);
  for (int i = 0; i < lowered; ++i) {
    const auto at = static_cast<size_t>((seed * 3 + i) % 20);
    clocks[at] = static_cast<uint64_t>(850 + 10 * seed);
    reasons[at] = reason;
  }
  run.add_counter(Counter::sm_clock, clocks);
  run.add_counter(Counter::throttle_reasons, reasons);
  run.add_counter(Counter::max_sm_clock, {1980});
}

TEST(Throttled, ThroughoutInPartAndNever) {
  for (int seed = 0; seed < 20; ++seed) {
    RunMaker throughout(10), third(10), never(10);
    add_clocks(throughout, seed, 20, 0x40);
    add_clocks(third, seed, 7, 0x20);
    add_clocks(never, seed, 20, 0x1);  // idle
    const analysis::Report all = analysis::make_report(load(throughout.dump()));
    ASSERT_TRUE(throttled(all)) << seed;
    const double lost = 1 - (850.0 + 10 * seed) / 1980;
    EXPECT_NEAR(throttled(all)->saves_pct, all.breakdown_pct[0] * lost, 0.01);
    EXPECT_TRUE(throttled(analysis::make_report(load(third.dump())))) << seed;
    EXPECT_FALSE(throttled(analysis::make_report(load(never.dump())))) << seed;
  }
}

TEST(Throttled, ByTheClockThatTheUserSet) {
  RunMaker run(10);
  run.add_counter(Counter::sm_clock, {1500, 900, 1500, 900});
  run.add_counter(Counter::throttle_reasons, {0x2, 0x40, 0x2, 0x40});
  run.add_counter(Counter::max_sm_clock, {1980});
  const analysis::Report report = analysis::make_report(load(run.dump()));
  ASSERT_TRUE(throttled(report));
  EXPECT_NEAR(throttled(report)->saves_pct, report.breakdown_pct[0] * 0.5 * 0.4, 0.01);
}

TEST(Throttled, NotByTheUsersOwnClocksNorWhereItCostsNothing) {
  RunMaker own(10), little(10);
  own.add_counter(Counter::sm_clock, {1980, 1000, 1000, 1000});
  own.add_counter(Counter::throttle_reasons, {0, 0x2, 0x2, 0x1});
  EXPECT_FALSE(throttled(analysis::make_report(load(own.dump()))));
  little.add_counter(Counter::sm_clock, {1980, 1975, 1975, 1975});
  little.add_counter(Counter::throttle_reasons, {0, 0x4, 0x4, 0x4});
  EXPECT_FALSE(throttled(analysis::make_report(load(little.dump()))));
}

}  // namespace
}  // namespace gpuprof::test
