// SPDX-License-Identifier: Apache-2.0
// Steps of programs of shapes that the search was not made for: how many counts are right, and that
// none is wrong and sure.
#include <gtest/gtest.h>

#include <cstdio>
#include <ostream>
#include <string>

#include "formats/core/period/period.h"
#include "tests/unit/support/other_streams.h"
#include "tests/unit/support/sanitized.h"

namespace gpuprof {
namespace {

using test::LaunchStream;
using test::OtherPrograms;

constexpr int kStreams = test::kSanitized ? 6 : 30;  // of each kind

struct Kind {
  const char* name;
  LaunchStream (OtherPrograms::*make)();
};

void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

class PeriodOtherPrograms : public testing::TestWithParam<Kind> {};

TEST_P(PeriodOtherPrograms, NoCountIsWrongAndSure) {
  int right = 0, sure = 0, silent = 0;
  for (int number = 0; number < kStreams; ++number) {
    OtherPrograms maker(90'001 + static_cast<uint64_t>(number) * 101);
    const LaunchStream stream = (maker.*GetParam().make)();
    Period period;
    ASSERT_TRUE(find_period(stream.kernels.data(), stream.kernels.size(), period));
    const bool is_right = period.begins.size() == stream.steps;
    right += is_right;
    sure += is_right && period.confidence > 0.5;
    silent += period.confidence == 0;
    EXPECT_TRUE(is_right || period.confidence <= 0.5)
        << number << ": " << stream.steps << " steps, found " << period.begins.size()
        << ", confidence " << period.confidence;
  }
  std::printf("%s: %d of %d right, %d of them with a confidence over 0.5; %d without a period\n",
              GetParam().name, right, kStreams, sure, silent);
}

INSTANTIATE_TEST_SUITE_P(Kinds, PeriodOtherPrograms,
                         testing::Values(Kind{"experts", &OtherPrograms::experts},
                                         Kind{"recurrent", &OtherPrograms::recurrent},
                                         Kind{"averaged", &OtherPrograms::averaged},
                                         Kind{"scaled", &OtherPrograms::scaled},
                                         Kind{"regularized", &OtherPrograms::regularized},
                                         Kind{"diffusion", &OtherPrograms::diffusion},
                                         Kind{"replayed", &OtherPrograms::replayed},
                                         Kind{"doubled", &OtherPrograms::doubled}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace gpuprof
