// SPDX-License-Identifier: Apache-2.0
// What diff finds, and does not find, between runs whose noise and changes are known.
#include "tools/analysis/diff.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/support/job_model.h"
#include "tools/report/diff_html.h"
#include "tools/report/diff_output.h"

namespace gpuprof {
namespace {

using namespace analysis;
using test::Job;
using test::JobModel;

// 2 % noise on each kernel, 3 % on each step, as of a machine of one's own.
Job job(uint64_t seed) {
  Job out;
  out.steps = 20;
  out.data = 500'000;
  out.noise = 0.03;
  out.seed = seed;
  return out;
}

RunSample sample(const Job& job) {
  RunSample out;
  out.add_run(JobModel(job).trace());
  return out;
}

const Change* find(const Diff& diff, std::string_view text) {
  for (const Change& change : diff.changes) {
    if (change.name.find(text) != std::string::npos) return &change;
  }
  return nullptr;
}

TEST(DiffTest, SameProgramIsNoRegression) {
  int alarms = 0, changed = 0;
  for (uint64_t i = 0; i < 100; ++i) {
    const Diff diff = compare(sample(job(1000 + i)), sample(job(2000 + i)));
    ASSERT_EQ(diff.reason, "");
    if (gate_of(diff, 0).regression) ++alarms;
    for (const Change& change : diff.changes) changed += change.significant;
  }
  EXPECT_LE(alarms, 2);
  EXPECT_LE(changed, 2);
}

TEST(DiffTest, ASlowerFamilyIsFound) {
  int found = 0;
  for (uint64_t i = 0; i < 100; ++i) {
    Job slower = job(2000 + i);
    slower.softmax = 1.05;
    const Diff diff = compare(sample(job(1000 + i)), sample(slower));
    const Change* const change = find(diff, "softmax");
    ASSERT_NE(change, nullptr);
    found += change->significant && change->change_pct > 0;
  }
  EXPECT_GE(found, 95);
}

TEST(DiffTest, OneSlowerKernelIsFound) {
  int found = 0;
  for (uint64_t i = 0; i < 100; ++i) {
    Job slower = job(2000 + i);
    slower.norm = 1.2;
    const Diff diff = compare(sample(job(1000 + i)), sample(slower));
    const Change* const change = find(diff, "norm");
    ASSERT_NE(change, nullptr);
    found += change->significant && std::abs(change->change_pct - 20) < 5;
  }
  EXPECT_GE(found, 95);
}

TEST(DiffTest, ARegressionIsGatedBeyondItsThreshold) {
  Job slower = job(7);
  slower.data = 1'000'000;  // about 10 % of the step
  const Diff diff = compare(sample(job(8)), sample(slower));
  EXPECT_TRUE(diff.significant);
  EXPECT_NEAR(diff.step_time.change_pct, 9, 2);
  EXPECT_LE(diff.step_time.low_pct, diff.step_time.change_pct);
  EXPECT_GE(diff.step_time.high_pct, diff.step_time.change_pct);
  EXPECT_TRUE(gate_of(diff, 5).regression);
  EXPECT_FALSE(gate_of(diff, 30).regression);
  EXPECT_EQ(diff.changes[0].kind, "cause");
  EXPECT_EQ(diff.changes[0].name, "data_loading");
  EXPECT_TRUE(diff.changes[0].significant);
  // The other way round it is a gain, and no gate fails.
  const Diff faster = compare(sample(slower), sample(job(8)));
  EXPECT_TRUE(faster.significant);
  EXPECT_LT(faster.step_time.change_pct, 0);
  EXPECT_FALSE(gate_of(faster, 0).regression);
}

TEST(DiffTest, WithoutGpuTimesOnlyStepsAreCompared) {
  RunSample without;
  Trace calls = JobModel(job(2)).trace();
  for (Process& process : calls.processes) {
    std::erase_if(process.lanes, [](const Lane& lane) { return lane.type == LaneType::stream; });
  }
  without.add_run(calls);
  ASSERT_FALSE(without.gpu_timed);
  const Diff diff = compare(sample(job(1)), without);
  EXPECT_EQ(diff.reason, "");
  EXPECT_GT(diff.step_time.base, 0);
  EXPECT_TRUE(diff.changes.empty());
}

// What GPUPROF_BUDGET left out of a run since the given part of its window, and what recording took
// of it, which its steps then lasted longer.
struct Recorded {
  std::vector<ShedKind> left_out;
  double since = 0, cost_pct = 0;
  bool whole_dump = true;  // its own cost is known
};

RunSample recorded(Job job, const Recorded& how) {
  job.kernel = static_cast<int64_t>(static_cast<double>(job.kernel) / (1 - how.cost_pct / 100));
  job.data = static_cast<int64_t>(static_cast<double>(job.data) / (1 - how.cost_pct / 100));
  Trace trace = JobModel(job).trace();
  for (Process& process : trace.processes) {
    const auto length = static_cast<double>(process.window_end - process.window_begin);
    const auto since = process.window_begin + static_cast<int64_t>(how.since * length);
    process.budget.allowed_pct = how.left_out.empty() ? 0 : 2;
    for (const ShedKind kind : how.left_out) process.budget.left_out.push_back({kind, since, 1});
    process.summary.set_hook_cost_ns(static_cast<uint64_t>(how.cost_pct / 100 * length));
    process.completeness = how.whole_dump ? Completeness::complete : Completeness::truncated;
  }
  RunSample out;
  out.add_run(trace);
  return out;
}

std::set<std::string> causes_of(const Diff& diff) {
  std::set<std::string> out;
  for (const Change& change : diff.changes) {
    if (change.kind == "cause") out.insert(change.name);
  }
  return out;
}

TEST(DiffTest, WhatOneRunLeftOutIsNotCompared) {
  const RunSample whole = recorded(job(1), {});
  const RunSample no_calls = recorded(job(2), {{ShedKind::calls}, 0.5});
  for (const Diff& diff : {compare(whole, no_calls), compare(no_calls, whole)}) {
    const std::set<std::string> causes = causes_of(diff);
    for (const char* const part : {"allocation", "kernel_launch", "other"}) {
      EXPECT_FALSE(causes.contains(part)) << part;
    }
    for (const char* const part : {"compute", "data_loading", "synchronization"}) {
      EXPECT_TRUE(causes.contains(part)) << part;
    }
    EXPECT_FALSE(diff.operators_not_compared);
    EXPECT_NE(find(diff, "softmax"), nullptr);
    const std::string text = diff_text(diff, gate_of(diff, 0), {200});
    EXPECT_NE(text.find("by GPUPROF_BUDGET: API calls that start no GPU work since step 15 ("),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("Not compared, since it needs what was not recorded: of a step "
                        "kernel_launch, allocation, other\n"),
              std::string::npos)
        << text;
  }
  const Diff operators = compare(whole, recorded(job(2), {{ShedKind::operators}}));
  EXPECT_TRUE(operators.operators_not_compared);
  EXPECT_FALSE(causes_of(operators).contains("data_loading"));
  // Where it is whole as long as the steps go, all is compared.
  const Diff late = compare(whole, recorded(job(2), {{ShedKind::calls}, 1}));
  EXPECT_TRUE(causes_of(late).contains("allocation"));
  EXPECT_TRUE(late.parts_not_compared.empty());
  // Host samples and call stacks are in no figure of it.
  const Diff samples = compare(whole, recorded(job(2), {{ShedKind::samples, ShedKind::stacks}}));
  EXPECT_TRUE(samples.parts_not_compared.empty());
  EXPECT_EQ(recording_lines(samples).size(), 2u);
}

RunSample recorded_with(const char* preset, uint64_t seed) {
  Trace trace = JobModel(job(seed)).trace();
  for (Process& process : trace.processes) {
    dump::Setting& setting = *process.header.add_setting();
    setting.set_name("GPUPROF_PRESET");
    setting.set_value(preset);
  }
  RunSample out;
  out.add_run(trace);
  return out;
}

TEST(DiffTest, WhatOneRunAloneWasToldToRecordIsNotCompared) {
  const RunSample whole = recorded_with("default", 1), light = recorded_with("light", 2);
  for (const Diff& diff : {compare(whole, light), compare(light, whole)}) {
    const std::set<std::string> causes = causes_of(diff);
    for (const char* const part : {"data_loading", "kernel_launch", "allocation", "other"}) {
      EXPECT_FALSE(causes.contains(part)) << part;
    }
    EXPECT_TRUE(causes.contains("compute"));
    EXPECT_TRUE(diff.operators_not_compared);
    const std::string text = diff_text(diff, gate_of(diff, 0), {200});
    EXPECT_NE(
        text.find("Not compared, since it needs what was not recorded: operators; of a step "),
        std::string::npos)
        << text;
    EXPECT_EQ(text.find("GPUPROF_BUDGET"), std::string::npos) << text;
    EXPECT_EQ(diff_json(diff, gate_of(diff, 0))["not_compared"].size(), 6u);
  }
  const Diff both = compare(light, recorded_with("light", 3));
  EXPECT_TRUE(causes_of(both).contains("other")) << "the same of both";
  EXPECT_TRUE(both.parts_not_compared.empty());
}

// One step that takes four times as long, in either run, is no change of the others.
TEST(DiffTest, ALongStepHidesNoSlowDownAndMakesNone) {
  int found = 0, alarms = 0;
  for (uint64_t i = 0; i < 20; ++i) {
    RunSample before = sample(job(1000 + i)), same = sample(job(2000 + i)), slower = same;
    for (double& step : slower.step_us) step *= 1.1;
    RunSample& disturbed = i % 2 ? before : slower;
    disturbed.step_us[5] *= 4;
    const Diff diff = compare(before, slower);
    EXPECT_LT(diff.step_time.low_pct, 5) << "the means alone would do";
    found += gate_of(diff, 5).regression;
    same.step_us[7] *= 4;
    const DiffGate healthy = gate_of(compare(sample(job(1000 + i)), same), 5);
    alarms += healthy.regression || healthy.not_excluded_pct > 0;
  }
  EXPECT_EQ(found, 20);
  EXPECT_EQ(alarms, 0);
}

TEST(DiffTest, WhatFewStepsDoNotExcludeIsSaid) {
  RunSample before, after;
  before.step_us = {5000, 5400, 4800, 5200};
  after.step_us = {5100, 5900, 4900, 5600};
  const Diff diff = compare(before, after);
  const DiffGate gate = gate_of(diff, 5);
  EXPECT_FALSE(gate.regression);
  EXPECT_GT(gate.not_excluded_pct, 10);
  EXPECT_NE(gate_text(gate).find(" is not excluded"), std::string::npos);
  EXPECT_EQ(gate_of(diff, 50).not_excluded_pct, 0);
}

TEST(DiffTest, AChangeThatIsTheRecordingsIsNoVerdict) {
  const Recorded lean{{ShedKind::calls}, 0.1, 0.3}, whole{{}, 0, 15};
  // The new run was slowed down by its recording alone.
  const Diff slower = compare(recorded(job(1), lean), recorded(job(2), whole));
  ASSERT_GT(slower.step_time.change_pct, 10);
  ASSERT_TRUE(slower.without_recording.has_value());
  EXPECT_NEAR(slower.without_recording->change_pct, 0, 3);
  const DiffGate gate = gate_of(slower, 5);
  EXPECT_TRUE(gate.unknown);
  EXPECT_FALSE(gate.regression);
  EXPECT_TRUE(diff_json(slower, gate)["regression"].is_null());
  EXPECT_NE(diff_text(slower, gate).find("Not known whether it is a regression"),
            std::string::npos);
  EXPECT_NE(diff_markdown(slower, gate).find("**Not known whether it is a regression"),
            std::string::npos);
  // Little is counted, and may be five times that. A slow-down beyond it is one.
  const Recorded little{{}, 0, 3};
  EXPECT_TRUE(gate_of(compare(recorded(job(1), lean), recorded(job(2), {{}, 0, 9})), 5).unknown);
  Job some = job(2), much = job(2);
  some.data = 1'200'000, much.data = 4'000'000;
  EXPECT_TRUE(gate_of(compare(recorded(job(1), lean), recorded(some, little)), 5).unknown);
  EXPECT_TRUE(gate_of(compare(recorded(job(1), lean), recorded(much, little)), 5).regression);
  // One that less recording hides is not known.
  const DiffGate hidden = gate_of(compare(recorded(job(1), whole), recorded(some, lean)), 5);
  EXPECT_TRUE(hidden.unknown);
  // Runs that were recorded alike are compared as they are.
  const DiffGate alike = gate_of(compare(recorded(job(1), lean), recorded(job(2), lean)), 5);
  EXPECT_FALSE(alike.unknown || alike.regression);
  EXPECT_TRUE(gate_of(compare(recorded(job(1), lean), recorded(some, lean)), 5).regression);
}

TEST(DiffTest, WithoutItsCostTheRecordingMayBeAnyChange) {
  const Recorded killed{{ShedKind::calls}, 0.1, 0, false};
  const Diff diff = compare(recorded(job(1), {}), recorded(job(2), killed));
  EXPECT_FALSE(diff.without_recording.has_value());
  EXPECT_TRUE(gate_of(diff, 5).unknown);
  EXPECT_NE(
      diff_text(diff, gate_of(diff, 5), {200}).find("What recording took of new is not known"),
      std::string::npos);
  EXPECT_FALSE(gate_of(compare(recorded(job(1), killed), recorded(job(2), killed)), 5).unknown);
  // Without a budget the recording is as it always was.
  const Recorded none{{}, 0, 15};
  EXPECT_TRUE(gate_of(compare(recorded(job(1), {}), recorded(job(2), none)), 5).regression);
}

TEST(DiffTest, APartThatWasNotThereIsNew) {
  Job slower = job(2);
  slower.data = 0;
  const Diff diff = compare(sample(slower), sample(job(1)));
  const std::string text = diff_text(diff, gate_of(diff, 0));
  EXPECT_NE(text.find("  new   data_loading\n"), std::string::npos) << text;
}

TEST(DiffTest, ManyTimesIsNoPercentage) {
  Job slower = job(2);
  slower.norm = 30;
  const Diff diff = compare(sample(job(1)), sample(slower));
  const std::string text = diff_text(diff, gate_of(diff, 0));
  EXPECT_NE(text.find("  x 30   norm <<<512x1x1, 256x1x1>>>\n"), std::string::npos) << text;
}

// A host that no longer waits for the GPU is ahead of it: its kernels run steps later.
TEST(DiffTest, KernelsStayTheSameWhereTheHostRunsAhead) {
  Job ahead = job(2);
  ahead.data = 0;
  ahead.sync_every = 1'000'000;
  ahead.unrecorded = 4;
  const Diff diff = compare(sample(job(1)), sample(ahead));
  size_t kernels = 0;
  for (const Change& change : diff.changes) {
    if (change.kind != "kernel") continue;
    ++kernels;
    EXPECT_FALSE(change.significant) << change.name;
    EXPECT_NEAR(change.change_pct, 0, 3) << change.name;
  }
  EXPECT_EQ(kernels, 3u);
}

TEST(DiffTest, RenamedGoneAndNewKernels) {
  Job other = job(2);
  other.norm_name = "_Z8new_normPf";
  const Diff renamed = compare(sample(job(1)), sample(other));
  const Change* const change = find(renamed, " -> ");
  ASSERT_NE(change, nullptr);
  EXPECT_NE(change->name.find("norm(float*)"), std::string::npos);
  EXPECT_NE(change->name.find("new_norm(float*)"), std::string::npos);
  EXPECT_FALSE(change->gone);
  EXPECT_NEAR(change->change_pct, 0, 5);
  other = job(2);
  other.collective = 100'000;
  const Diff more = compare(sample(job(1)), sample(other));
  const Change* const fresh = find(more, "ncclDevKernel");
  ASSERT_NE(fresh, nullptr);
  EXPECT_TRUE(fresh->fresh && fresh->significant);
  const Diff less = compare(sample(other), sample(job(1)));
  EXPECT_TRUE(find(less, "ncclDevKernel")->gone);
}

// Of a base with bias and activation as kernels of their own, and a new run with one kernel for
// both.
std::pair<Job, Job> fusion(uint64_t seed, double fused_time) {
  Job before = job(1000 + seed), after = job(2000 + seed);
  before.layer = Job::Layer::separate;
  after.layer = Job::Layer::fused;
  after.fused_time = fused_time;
  return {before, after};
}

double us_of(const RunSample& run, std::string_view kernel) {
  double sum = 0;
  for (const auto& [key, sample] : run.keys) {
    if (key.kind != "kernel" || !key.name.starts_with(kernel)) continue;
    for (const double us : sample.step_us) sum += us / static_cast<double>(run.step_us.size());
  }
  return sum;
}

TEST(DiffTest, FusedAndSplitKernels) {
  const auto [before, after] = fusion(1, 0.5);
  const RunSample base = sample(before), other = sample(after);
  const Diff diff = compare(base, other);
  const Change* const change = find(diff, " -> ");
  ASSERT_NE(change, nullptr);
  EXPECT_EQ(change->kind, "kernels_fused");
  EXPECT_EQ(change->name,
            "bias(float*) <<<512x1x1, 256x1x1>>> + gelu(float*) <<<512x1x1, 256x1x1>>> -> "
            "bias_gelu(float*) <<<512x1x1, 256x1x1>>>");
  ASSERT_EQ(change->from.size(), 2u);
  ASSERT_EQ(change->to.size(), 1u);
  EXPECT_NEAR(change->base_us, us_of(base, "bias(") + us_of(base, "gelu("), 1e-6);
  EXPECT_NEAR(change->base_us, 6 * 200, 6 * 200 * 0.05);  // three pairs of kernels
  EXPECT_NEAR(change->new_us, us_of(other, "bias_gelu("), 1e-6);
  EXPECT_NEAR(change->change_pct, -50, 5);
  EXPECT_TRUE(change->significant);
  for (const Change& each : diff.changes) EXPECT_FALSE(each.gone || each.fresh) << each.name;
  const Json json = diff_json(diff, gate_of(diff, 0));
  EXPECT_EQ(json["changes"][0]["from"].size(), 2u);
  EXPECT_EQ(json["changes"][0]["to"][0], "bias_gelu(float*) <<<512x1x1, 256x1x1>>>");
  const std::string text = diff_text(diff, gate_of(diff, 0));
  EXPECT_NE(text.find(" -> bias_gelu\n"), std::string::npos) << text;
  EXPECT_NE(diff_text(diff, gate_of(diff, 0), {200, true}).find(" -> bias_gelu(float*) <<<512"),
            std::string::npos);
  // The other way round it is one kernel that became two.
  const Diff back = compare(other, base);
  const Change* const split = find(back, " -> ");
  ASSERT_NE(split, nullptr);
  EXPECT_EQ(split->kind, "kernels_split");
  EXPECT_NEAR(split->change_pct, 100, 10);
  for (const Change& each : back.changes) EXPECT_FALSE(each.gone || each.fresh) << each.name;
}

TEST(DiffTest, FusedKernelsThatRunElsewhereKeepTheirRows) {
  auto [before, after] = fusion(1, 0.5);
  before.lone_bias = true;
  // The lone bias is still there: which of its time went into the new kernel is not known.
  after.lone_bias = true;
  const Diff kept = compare(sample(before), sample(after));
  EXPECT_EQ(find(kept, " -> "), nullptr);
  EXPECT_TRUE(find(kept, "gelu(float*)")->gone || find(kept, "bias_gelu(float*)")->fresh);
  // Here it is not, but it stood in another place, too.
  after.lone_bias = false;
  const Diff elsewhere = compare(sample(before), sample(after));
  for (const Change& each : elsewhere.changes) EXPECT_NE(each.kind, "kernels_fused") << each.name;
}

TEST(DiffTest, FusionsAreFoundAndAreNoAlarmsThemselves) {
  int found = 0, slower = 0, alarms = 0;
  for (uint64_t i = 0; i < 100; ++i) {
    const auto [before, same] = fusion(i, 1);
    const Diff equal = compare(sample(before), sample(same));
    const Change* change = find(equal, " -> ");
    found += change && change->kind == "kernels_fused";
    alarms += gate_of(equal, 0).regression || (change && change->significant);
    const auto [again, worse] = fusion(i, 1.1);
    const Diff longer = compare(sample(again), sample(worse));
    change = find(longer, " -> ");
    slower += change && change->significant && std::abs(change->change_pct - 10) < 5;
  }
  EXPECT_EQ(found, 100);
  EXPECT_LE(alarms, 2);
  EXPECT_GE(slower, 95);
}

TEST(DiffTest, RepeatsMakeOneSample) {
  RunSample base = sample(job(1));
  base.add_run(JobModel(job(2)).trace());
  EXPECT_EQ(base.step_us.size(), 40u);
  for (const auto& [key, each] : base.keys) EXPECT_EQ(each.step_us.size(), 40u) << key.name;
  double cause = 0, wall = 0;
  for (const auto& [key, each] : base.keys) {
    if (key.kind != "cause") continue;
    for (const double us : each.step_us) cause += us;
  }
  for (const double us : base.step_us) wall += us;
  EXPECT_NEAR(cause, wall, 1e-3 * wall);
}

TEST(DiffTest, TooFewStepsSaySo) {
  Job few = job(1);
  few.steps = 2;
  const Diff diff = compare(sample(few), sample(job(2)));
  EXPECT_EQ(diff.reason, "too few steps: base has 2 steps; at least 3 of each run are needed");
  const DiffGate gate = gate_of(diff, 0);
  EXPECT_FALSE(gate.regression);
  const Json json = diff_json(diff, gate);
  EXPECT_EQ(json["base_steps"], 2);
  EXPECT_TRUE(json["step_time"].is_null() && json["regression"].is_null());
  EXPECT_NE(diff_html(json).find("No comparison: too few steps"), std::string::npos);
  few.steps = 1;
  EXPECT_EQ(compare(sample(few), RunSample()).reason,
            "too few steps: base has one step, new has no step; at least 3 of each run are needed");
}

// Such steps are as long however slow the program is.
TEST(DiffTest, StretchesOfWallTimeAreNotCompared) {
  const RunSample marked = sample(job(1));
  RunSample clock = sample(job(2));
  clock.clock_source = "time:1000";
  EXPECT_EQ(lacking(marked), "");
  EXPECT_EQ(lacking(clock).find("its steps are stretches of wall time (time:1000)"), 0u);
  EXPECT_EQ(compare(marked, clock).reason.find("the steps of new are stretches of wall time"), 0u);
  EXPECT_EQ(compare(clock, marked).reason.find("the steps of base are stretches"), 0u);
  const Diff diff = compare(clock, clock);
  EXPECT_EQ(diff.reason.find("the steps of both runs are stretches"), 0u);
  EXPECT_FALSE(gate_of(diff, 5).regression);
  EXPECT_TRUE(diff_json(diff, gate_of(diff, 5))["regression"].is_null());
}

TEST(DiffTest, PartsOfIterationsAreNotComparedWithWholeOnes) {
  RunSample parts = sample(job(1)), whole = sample(job(2));
  parts.waits_in_step = 1;
  EXPECT_EQ(compare(parts, whole).reason, "");
  whole.waits_in_step = 3;
  EXPECT_EQ(compare(whole, whole).reason, "");
  EXPECT_EQ(compare(parts, whole).reason,
            "a step is one call of cudaDeviceSynchronize in base and 3 in new; record both with "
            "GPUPROF_STEP=sync:3");
}

// Reference values of scipy.stats 1.17: ttest_ind(equal_var=False),
// mannwhitneyu(method="asymptotic"), false_discovery_control.
TEST(StatisticsTest, AgreesWithReferenceValues) {
  const std::vector<double> a{5.1, 4.9, 5.6, 5.2, 5.0, 4.8, 5.3, 5.5};
  const std::vector<double> b{5.9, 5.4, 6.1, 5.7, 5.8, 6.3, 5.2, 6.0, 5.6};
  const MeanChange change = welch(a, b);
  EXPECT_NEAR(change.p, 0.00127419963692629, 1e-6);
  EXPECT_NEAR(change.low_pct, 5.37342205736366, 1e-6);
  EXPECT_NEAR(change.high_pct, 17.922337470279896, 1e-6);
  EXPECT_NEAR(mann_whitney(a, b), 0.004481406394711458, 1e-6);
  const std::vector<double> rates = false_discovery_rates({0.01, 0.04, 0.03, 0.5});
  EXPECT_NEAR(rates[0], 0.04, 1e-12);
  EXPECT_NEAR(rates[1], 0.16 / 3, 1e-12);
  EXPECT_NEAR(rates[2], 0.16 / 3, 1e-12);
  EXPECT_NEAR(rates[3], 0.5, 1e-12);
}

TEST(StatisticsTest, TimesDoNotFallByMoreThanAll) {
  const MeanChange change = welch(std::vector<double>{20, 100, 500}, std::vector<double>{1, 2, 3});
  EXPECT_GT(change.change_pct, -100);
  EXPECT_EQ(change.low_pct, -100);
  EXPECT_GT(change.high_pct, 0);
}

Change changed(const char* kind, const char* name, double before, double now, bool significant) {
  Change out;
  out.kind = kind;
  out.name = name;
  out.base_us = before;
  out.new_us = now;
  out.change_pct = before > 0 ? 100 * (now - before) / before : 0;
  out.gone = now == 0;
  out.significant = significant;
  return out;
}

TEST(DiffText, LargestFirstByKindAndWhatMayBeNoiseInBrackets) {
  Diff diff;
  diff.step_time.base = 200'000;
  diff.step_time.other = 120'000;
  diff.changes = {
      changed("kernel", "void a::tiny<float>(float*) <<<1x1x1, 32x1x1>>>", 500, 900, true),
      changed("operator", "aten::relu", 9'000, 8'000, true),
      changed("operator", "aten::mul", 38'000, 0, false),
      changed("operator", "aten::add", 30'000, 29'000, false),
      changed("cause", "data_loading", 135'000, 40'000, false)};
  const std::string text = diff_text(diff, {});
  size_t at = 0;
  for (const char* const part :
       {"In brackets: changes that may be noise\n", "Parts of a step", "(-70.4 %)  data_loading\n",
        "Operators", "(gone)  aten::mul\n", "-11.1 %   aten::relu\n", "Kernels",
        "+80.0 %   tiny<float> <<<1x1x1, 32x1x1>>>\n"}) {
    at = text.find(part, at);
    ASSERT_NE(at, std::string::npos) << part << text;
  }
  EXPECT_EQ(text.find("aten::add"), std::string::npos) << "less than 5 % of the step";
  EXPECT_EQ(text.find("Nothing in a step"), std::string::npos);
}

TEST(StatisticsTest, SamplesWithoutSpread) {
  const std::vector<double> a{2, 2, 2}, b{3, 3, 3};
  EXPECT_EQ(welch(a, a).p, 1);
  EXPECT_EQ(welch(a, b).p, 0);
  EXPECT_DOUBLE_EQ(welch(a, b).change_pct, 50);
  EXPECT_EQ(welch({}, a).p, 1);
  EXPECT_EQ(mann_whitney(a, b), 1);
}

TEST(Significance, OfASingleStepNothingIsKnown) {
  const double one[] = {100}, slower[] = {150};
  EXPECT_FALSE(is_significant(welch(one, slower)));
  const double few[] = {100, 101}, few_slower[] = {150, 151};
  EXPECT_TRUE(is_significant(welch(few, few_slower)));
}

// By hand: of four and four the interval is that of the least and the largest ratio.
TEST(TypicalChange, IsTheMedianOfRatios) {
  const std::vector<double> a{10, 20, 30, 40}, b{20, 40, 60, 80};
  const MeanChange change = typical_change(a, b);
  EXPECT_DOUBLE_EQ(change.base, 25);
  EXPECT_DOUBLE_EQ(change.other, 50);
  EXPECT_DOUBLE_EQ(change.change_pct, 100);
  EXPECT_DOUBLE_EQ(change.low_pct, -50);
  EXPECT_DOUBLE_EQ(change.high_pct, 700);
  EXPECT_EQ(typical_change(std::vector<double>{1, 2, 3}, b).p, 1);
  const std::vector<double> many(5000, 10.0), more(5000, 11.0);
  EXPECT_NEAR(typical_change(many, more).low_pct, 10, 1e-9);
}

}  // namespace
}  // namespace gpuprof
