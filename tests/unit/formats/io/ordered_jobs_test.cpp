// SPDX-License-Identifier: Apache-2.0
#include "formats/io/ordered_jobs.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <chrono>
#include <latch>
#include <stdexcept>
#include <thread>

namespace gpuprof {
namespace {

struct Job {
  int number = 0;
  std::thread::id thread;
  void run() {
    thread = std::this_thread::get_id();
    if (number == 3) throw std::runtime_error("job 3");
  }
};

// Numbers in the order in which they come out; where one throws, its negative.
std::vector<int> results(OrderedJobs<Job>& jobs, bool* elsewhere = nullptr) {
  std::vector<int> out;
  const auto take = [&] {
    try {
      const std::unique_ptr<Job> job = jobs.next();
      out.push_back(job->number);
      if (elsewhere) *elsewhere |= job->thread != std::this_thread::get_id();
    } catch (const std::runtime_error&) {
      out.push_back(-3);
    }
  };
  for (int i = 0; i < 8; ++i) {
    if (!jobs.has_room()) take();
    auto job = std::make_unique<Job>();
    job->number = i;
    jobs.submit(std::move(job));
  }
  while (!jobs.empty()) take();
  return out;
}

const std::vector<int> kInOrder = {0, 1, 2, -3, 4, 5, 6, 7};

TEST(OrderedJobs, ResultsAndErrorsComeInOrder) {
  for (const unsigned threads : {1u, 2u, 5u}) {
    OrderedJobs<Job> jobs(threads);
    EXPECT_EQ(results(jobs), kInOrder) << threads;
  }
}

// The first job goes on once the second is done: one other thread cannot do both.
struct LinkedJob {
  std::latch *first_begun = nullptr, *second_done = nullptr;
  bool first = false, went_on = false;
  std::thread::id thread;
  void run() {
    thread = std::this_thread::get_id();
    if (!first) return second_done->count_down();
    first_begun->count_down();
    for (int i = 0; i < 5000 && !(went_on = second_done->try_wait()); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
};

TEST(OrderedJobs, TheOwnerWorksWhileItWaits) {
  std::latch first_begun(1), second_done(1);
  OrderedJobs<LinkedJob> jobs(2);
  for (const bool first : {true, false}) {
    auto job = std::make_unique<LinkedJob>();
    job->first_begun = &first_begun;
    job->second_done = &second_done;
    job->first = first;
    jobs.submit(std::move(job));
    first_begun.wait();  // by the other thread
  }
  EXPECT_TRUE(jobs.next()->went_on);
  EXPECT_EQ(jobs.next()->thread, std::this_thread::get_id());
}

TEST(OrderedJobs, WithoutAThreadTheWorkIsDoneHere) {
  pthread_attr_t before, vast;
  ASSERT_EQ(::pthread_getattr_default_np(&before), 0);
  ASSERT_EQ(::pthread_getattr_default_np(&vast), 0);
  ASSERT_EQ(::pthread_attr_setstacksize(&vast, size_t{1} << 60), 0);  // beyond any address
  ASSERT_EQ(::pthread_setattr_default_np(&vast), 0);
  bool elsewhere = false;
  {
    OrderedJobs<Job> jobs(4);
    EXPECT_EQ(results(jobs, &elsewhere), kInOrder);
  }
  EXPECT_EQ(::pthread_setattr_default_np(&before), 0);
  EXPECT_FALSE(elsewhere);
}

}  // namespace
}  // namespace gpuprof
