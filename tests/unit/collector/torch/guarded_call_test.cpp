// SPDX-License-Identifier: Apache-2.0
#include "collector/torch/guarded_call.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <stdexcept>
#include <string>

namespace gpuprof {
namespace {

struct Counted {
  explicit Counted(int& at) : count(at) { ++count; }
  ~Counted() { --count; }
  int& count;
};

struct Thrower {
  int live = 0, depth = 0;
  bool throws = true;
};

[[gnu::noinline]] void fall(Thrower& thrower, int depth) {
  const Counted counted(thrower.live);
  thrower.depth = depth;
  if (depth < 10) return fall(thrower, depth + 1);
  if (thrower.throws) throw std::runtime_error(std::string(100, 'x'));
}

TEST(GuardedCall, EndsWhereTheCallThrows) {
  ASSERT_TRUE(guard_is_usable(nullptr));
  Thrower thrower;
  const auto call = [](void* memory) { fall(*static_cast<Thrower*>(memory), 0); };
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(guarded_call(call, &thrower));
  EXPECT_EQ(thrower.live, 0);
  EXPECT_EQ(thrower.depth, 10);
  EXPECT_EQ(std::uncaught_exceptions(), 0);
  thrower.throws = false;
  EXPECT_TRUE(guarded_call(call, &thrower));
}

TEST(GuardedCall, GoesOnWithinAnother) {
  ASSERT_TRUE(guard_is_usable(nullptr));
  try {
    throw 1;
  } catch (int) {
    EXPECT_FALSE(guarded_call([](void*) { throw 2; }, nullptr));
  }
  const auto twice = [](void* out) {
    *static_cast<bool*>(out) = guarded_call([](void*) { throw 3; }, nullptr);
    throw 4;
  };
  bool inner = true;
  EXPECT_FALSE(guarded_call(twice, &inner));
  EXPECT_FALSE(inner);
}

// Which unwinds, too, and must not be held.
TEST(GuardedCall, LetsAThreadEnd) {
  ASSERT_TRUE(guard_is_usable(nullptr));
  pthread_t thread;
  bool went_on = false;
  const auto run = [](void* out) -> void* {
    guarded_call([](void*) { pthread_exit(nullptr); }, nullptr);
    *static_cast<bool*>(out) = true;
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, nullptr, run, &went_on), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  EXPECT_FALSE(went_on);
}

}  // namespace
}  // namespace gpuprof
