// SPDX-License-Identifier: Apache-2.0
// Steps of programs with phases, from the order of launches alone: 440 streams of eleven kinds, a
// third of them with kernels missing and added.
#include <gtest/gtest.h>

#include <cstdio>
#include <iterator>
#include <ostream>
#include <string>

#include "formats/core/period/period.h"
#include "tests/unit/support/program_streams.h"
#include "tests/unit/support/sanitized.h"

namespace gpuprof {
namespace {

using test::LaunchStream;
using test::ProgramMaker;

constexpr int kStreams = 40;  // of each kind
constexpr int kTried = test::kSanitized ? 8 : kStreams;

struct Kind {
  const char* name;
  int right;  // at least so many streams
  LaunchStream (*make)(ProgramMaker&);
};

void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

constexpr Kind kKinds[] = {
    {"training", 40, [](ProgramMaker& m) { return m.training(0); }},
    {"accumulation", 40, [](ProgramMaker& m) { return m.training(0, m.from(2, 8)); }},
    {"evaluation_every_20_to_60", 34, [](ProgramMaker& m) { return m.training(m.from(20, 60)); }},
    {"evaluation_every_60_to_200", 40, [](ProgramMaker& m) { return m.training(m.from(60, 200)); }},
    {"evaluation_every_200_to_500", 40,
     [](ProgramMaker& m) { return m.training(m.from(200, 500)); }},
    {"accumulation_and_evaluation", 39,
     [](ProgramMaker& m) { return m.training(m.from(20, 100), m.from(2, 4)); }},
    {"checkpoints", 40, [](ProgramMaker& m) { return m.checkpoints(); }},
    {"growing", 34, [](ProgramMaker& m) { return m.growing(); }},
    {"adversaries", 37, [](ProgramMaker& m) { return m.adversaries(); }},
    {"reinforcement", 36, [](ProgramMaker& m) { return m.reinforcement(); }},
    {"generation", 38, [](ProgramMaker& m) { return m.generation(); }},
};

constexpr int right_of_all() {
  int sum = 0;
  for (const Kind& kind : kKinds) sum += kind.right;
  return sum;
}
static_assert(std::size(kKinds) * kStreams >= 400);
static_assert(right_of_all() >= 0.95 * std::size(kKinds) * kStreams);

class PeriodPrograms : public testing::TestWithParam<Kind> {};

TEST_P(PeriodPrograms, StepsAreCountedAndNoneIsWrongAndSure) {
  int right = 0, sure = 0;
  for (int number = 0; number < kTried; ++number) {
    ProgramMaker maker(77'000 + static_cast<uint64_t>(number) * 13);
    LaunchStream stream = GetParam().make(maker);
    maker.disturb(stream, number % 3 == 2 ? maker.from(1, 3) : 0);
    Period period;
    ASSERT_TRUE(find_period(stream.kernels.data(), stream.kernels.size(), period));
    const bool is_right = period.begins.size() == stream.steps;
    right += is_right;
    sure += is_right && period.confidence > 0.5;
    EXPECT_TRUE(is_right || period.confidence <= 0.5)
        << number << ": " << stream.steps << " steps, found " << period.begins.size()
        << ", confidence " << period.confidence;
  }
  std::printf("%d of %d right, %d of them with a confidence over 0.5\n", right, kTried, sure);
  EXPECT_GE(right, GetParam().right - (kStreams - kTried));
}

INSTANTIATE_TEST_SUITE_P(Kinds, PeriodPrograms, testing::ValuesIn(kKinds),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace gpuprof
