// SPDX-License-Identifier: Apache-2.0
// Which launches and which collectives a step source counts.
#include <gtest/gtest.h>
#include <unistd.h>

#include "collector/record/collector.h"
#include "collector/record/communicators.h"
#include "collector/record/names.h"
#include "collector/record/session.h"
#include "collector/steps/kernel_steps.h"

namespace gpuprof {
namespace {

const int kModule = 0, kOther = 0;
const int kFunctions[3] = {};

class KernelSteps : public testing::Test {
 protected:
  void TearDown() override {
    unregister_functions(&kModule);
    unregister_functions(&kOther);
  }
};

TEST_F(KernelSteps, TheDemangledNameIsMatched) {
  compile_kernel_pattern("^adam<float>\\(");
  register_function(&kModule, &kFunctions[0], "_Z4adamIfEvPT_");
  register_function(&kModule, &kFunctions[1], "_Z4adamIdEvPT_");
  for (int again = 0; again < 2; ++again) {
    EXPECT_FALSE(kernel_matches(&kFunctions[1])) << "adam<double>";
    EXPECT_FALSE(kernel_matches(&kFunctions[2])) << "nobody knows it";
    EXPECT_FALSE(kernel_matches(nullptr));
  }
}

TEST_F(KernelSteps, APatternMatchesAnyPart) {
  register_function(&kModule, &kFunctions[0], "_Z4adamIfEvPT_");
  register_function(&kModule, &kFunctions[1], "_Z4adamIdEvPT_");
  compile_kernel_pattern("adam<float>");  // the whole is "void adam<float>(float*)"
  EXPECT_TRUE(kernel_matches(&kFunctions[0]));
  EXPECT_FALSE(kernel_matches(&kFunctions[1])) << "adam<double>";
}

TEST_F(KernelSteps, AHandleIsItsFunction) {
  compile_kernel_pattern("^gemm$");
  register_function(&kModule, &kFunctions[0], "gemm");
  register_kernel(&kFunctions[1], &kFunctions[0]);
  EXPECT_TRUE(kernel_matches(&kFunctions[1]));
}

TEST_F(KernelSteps, AVerdictLastsAsLongAsTheName) {
  compile_kernel_pattern("gemm");
  EXPECT_FALSE(kernel_matches(&kFunctions[0])) << "not registered yet";
  register_function(&kModule, &kFunctions[0], "gemm");
  EXPECT_TRUE(kernel_matches(&kFunctions[0]));
  unregister_functions(&kModule);
  EXPECT_FALSE(kernel_matches(&kFunctions[0])) << "dlclose";
  register_function(&kOther, &kFunctions[0], "softmax");
  EXPECT_FALSE(kernel_matches(&kFunctions[0])) << "another module at the same address";
}

TEST_F(KernelSteps, MoreFunctionsThanTheTableHolds) {
  static const char functions[40000] = {};
  compile_kernel_pattern("even");
  for (size_t i = 0; i < sizeof functions; ++i) {
    register_function(&kModule, &functions[i], i % 2 ? "odd" : "even");
  }
  for (int again = 0; again < 2; ++again) {
    for (size_t i = 0; i < sizeof functions; ++i) {
      ASSERT_EQ(kernel_matches(&functions[i]), i % 2 == 0) << i;
    }
  }
}

TEST(LargestCommunicator, IsTheOneOfMostRanks) {
  const int world = 0, tensor = 0, pipeline = 0, unknown = 0;
  EXPECT_TRUE(is_largest_communicator(&unknown)) << "nothing is known";
  register_communicator(&tensor, {2, 0});
  EXPECT_TRUE(is_largest_communicator(&tensor));
  register_communicator(&world, {8, 0});
  register_communicator(&pipeline, {4, 0});
  EXPECT_TRUE(is_largest_communicator(&world));
  EXPECT_FALSE(is_largest_communicator(&tensor));
  EXPECT_FALSE(is_largest_communicator(&unknown));
  forget_communicator(&world);
  EXPECT_TRUE(is_largest_communicator(&pipeline)) << "the world was destroyed";
  EXPECT_FALSE(is_largest_communicator(&tensor));
  forget_communicator(&pipeline);
  forget_communicator(&tensor);
}

// The lock is this thread's already: who takes it stands still, and the alarm ends the test.
TEST(NvtxSteps, RangesThatAreNoStepsTakeNoLock) {
  Session& s = session();
  ASSERT_TRUE(ensure_configured());
  s.nvtx_steps.store(true);
  const auto any_thread = [](const char*) { return true; };
  ::alarm(20);
  {
    const LockGuard guard(s.step_lock);
    for (const char* message : {"Thunk:#hlo_op=fusion.3#", "forward", "", "stepping"}) {
      step_nvtx(message, 1000, any_thread);
    }
  }
  ::alarm(0);
}

}  // namespace
}  // namespace gpuprof
