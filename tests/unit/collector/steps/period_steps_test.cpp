// SPDX-License-Identifier: Apache-2.0
// The step source `period` while a program runs: launches one after the other, and the clock.
#include "collector/steps/period_steps.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

namespace gpuprof {
namespace {

constexpr uint64_t kLaunchNs = 100'000;

// Launches of a program, and what the library makes of them.
class Program {
 public:
  Program() { period_begin(); }

  void launch(uint64_t function) {
    if (period_launch(function)) begins_.push_back(launches_);
    if (++launches_ % 64 == 0 && period_look(launches_ * kLaunchNs, found_)) ++times_found_;
  }
  void launch_all(const std::vector<uint64_t>& functions) {
    for (const uint64_t function : functions) launch(function);
  }

  size_t launches_ = 0;
  int times_found_ = 0;
  FoundSteps found_{};
  std::vector<size_t> begins_;  // numbers of launches with which steps began
};

// Layers forward and backward that repeat, and an optimizer of a few.
std::vector<uint64_t> training_step(uint64_t first, int layers) {
  std::vector<uint64_t> out = {first, first + 8};
  for (int i = 0; i < layers; ++i) {
    for (uint64_t k = 0; k < 7; ++k) out.push_back(first + 100 + k * 8);
  }
  for (int i = 0; i < layers; ++i) {
    for (uint64_t k = 0; k < 11; ++k) out.push_back(first + 200 + k * 8);
  }
  for (int i = 0; i < 4; ++i) out.push_back(first + 400);
  return out;
}

void expect_steps_since(const Program& run, size_t from, size_t length) {
  ASSERT_GT(run.begins_.size(), from + 3);
  for (size_t i = from + 1; i < run.begins_.size(); ++i) {
    EXPECT_EQ(run.begins_[i] - run.begins_[i - 1], length);
  }
}

TEST(PeriodSteps, FoundOnceAndFollowed) {
  const std::vector<uint64_t> step = training_step(0x400000, 12);
  Program run;
  for (int i = 0; i < 400; ++i) run.launch_all(step);
  EXPECT_EQ(run.times_found_, 1);
  EXPECT_NEAR(run.found_.launches, static_cast<double>(step.size()), 0.5);
  EXPECT_GT(run.found_.confidence, 0.6);
  expect_steps_since(run, 0, step.size());
  EXPECT_LT(run.begins_[0], 150 * step.size()) << "two looks, a second and two from the begin";
}

// The first looks come while the first steps are under way: their layers repeat, too.
TEST(PeriodSteps, LayersOfLongStepsAreNoSteps) {
  const std::vector<uint64_t> step = training_step(0x400000, 400);  // 0.7 s each
  Program run;
  for (int i = 0; i < 60; ++i) run.launch_all(step);
  EXPECT_EQ(run.times_found_, 1);
  expect_steps_since(run, 0, step.size());
}

// What repeats for the first second and then no more is not what two looks agree on.
TEST(PeriodSteps, WarmUpIsNoStep) {
  const std::vector<uint64_t> warm_up = training_step(0x800000, 5),
                              step = training_step(0x400000, 12);
  Program run;
  while (run.launches_ < 10'200) run.launch_all(warm_up);
  for (int i = 0; i < 400; ++i) run.launch_all(step);
  EXPECT_EQ(run.times_found_, 1);
  EXPECT_NEAR(run.found_.launches, static_cast<double>(step.size()), 0.5);
  expect_steps_since(run, 0, step.size());
}

TEST(PeriodSteps, EvaluationIsNoStep) {
  const std::vector<uint64_t> step = training_step(0x400000, 12);
  const std::vector<uint64_t> forward(step.begin(), step.begin() + 2 + 12 * 7);
  Program run;
  std::vector<size_t> begins;
  for (int i = 0; i < 600; ++i) {
    begins.push_back(run.launches_);
    run.launch_all(step);
    for (int batch = 0; i % 5 == 4 && batch < 3; ++batch) run.launch_all(forward);
  }
  ASSERT_EQ(run.times_found_, 1);
  ASSERT_GT(run.begins_.size(), 50u);
  const size_t offset = run.begins_.back() - begins.back();
  EXPECT_LE(offset, step.size());
  for (size_t i = 0; i < run.begins_.size(); ++i) {
    EXPECT_EQ(run.begins_[run.begins_.size() - 1 - i], begins[begins.size() - 1 - i] + offset);
  }
}

TEST(PeriodSteps, AnotherProgramIsFoundAnew) {
  Program run;
  const std::vector<uint64_t> first = training_step(0x400000, 12),
                              second = training_step(0x800000, 20);
  for (int i = 0; i < 300; ++i) run.launch_all(first);
  EXPECT_EQ(run.times_found_, 1);
  const size_t before = run.begins_.size();
  for (int i = 0; i < 600; ++i) run.launch_all(second);
  EXPECT_EQ(run.times_found_, 2);
  expect_steps_since(run, before, second.size());
}

TEST(PeriodSteps, SilentWhereNothingRepeats) {
  std::mt19937_64 random(7);
  Program run;
  for (int i = 0; i < 300'000; ++i) run.launch(0x400000 + random() % 40 * 8);
  EXPECT_EQ(run.times_found_, 0);
  EXPECT_TRUE(run.begins_.empty());
}

// Launches of one thread while another looks, and a second one launches something else now and
// then.
TEST(PeriodSteps, LaunchesAndLooksAtTheSameTime) {
  const std::vector<uint64_t> step = training_step(0x400000, 12);
  period_begin();
  std::atomic<bool> done{false};
  std::atomic<int> begins{0};
  std::vector<std::thread> launchers;
  launchers.emplace_back([&] {
    while (!done) {
      for (const uint64_t function : step) begins += period_launch(function);
    }
  });
  launchers.emplace_back([&] {
    while (!done) {
      period_launch(0x900000);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  FoundSteps found{};
  uint64_t now = 0;
  for (int i = 0; i < 1000 && begins < 100; ++i) {
    period_look(now += 1'000'000'000, found);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  done = true;
  for (std::thread& launcher : launchers) launcher.join();
  EXPECT_GE(begins, 100);
  EXPECT_NEAR(found.launches, static_cast<double>(step.size()), 2);
}

TEST(PeriodSteps, NothingIsKeptOverABegin) {
  const std::vector<uint64_t> step = training_step(0x400000, 12);
  {
    Program run;
    for (int i = 0; i < 300; ++i) run.launch_all(step);
    EXPECT_FALSE(run.begins_.empty());
  }
  Program run;
  for (int i = 0; i < 3; ++i) run.launch_all(step);
  EXPECT_TRUE(run.begins_.empty());
}

}  // namespace
}  // namespace gpuprof
