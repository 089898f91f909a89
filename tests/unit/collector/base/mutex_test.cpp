// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <thread>
#include <vector>

#include "collector/base/os.h"

namespace gpuprof {
namespace {

TEST(Mutex, OneThreadAtATimeHasIt) {
  Mutex mutex;
  uint64_t count = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 50000; ++k) {
        const LockGuard guard(mutex);
        ++count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 200000U);
  EXPECT_TRUE(mutex.try_lock());
  EXPECT_FALSE(mutex.try_lock());
  mutex.unlock();
}

TEST(Mutex, WhoWaitsForItSleepsAndKeepsErrno) {
  Mutex mutex;
  mutex.lock();
  timespec used{};
  int error = 0;
  std::thread waiter([&] {
    errno = EDOM;
    mutex.lock();
    error = errno;
    mutex.unlock();
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  });
  constexpr auto kHeld = std::chrono::milliseconds(300);
  std::this_thread::sleep_for(kHeld);
  mutex.unlock();
  waiter.join();
  EXPECT_EQ(error, EDOM);
  const auto ran = std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
  EXPECT_LT(ran, kHeld / 2) << "it would have run all the time";
}

TEST(Mutex, OneThatIsNeverFreeIsWaitedForAsLongAsAsked) {
  Mutex mutex;
  EXPECT_TRUE(mutex.lock_within(0));
  bool first = true, second = false;
  std::thread waiter([&] {
    first = mutex.lock_within(1'000'000);
    second = mutex.lock_within(60'000'000'000);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  mutex.unlock();
  waiter.join();
  EXPECT_FALSE(first);
  EXPECT_TRUE(second);
}

}  // namespace
}  // namespace gpuprof
