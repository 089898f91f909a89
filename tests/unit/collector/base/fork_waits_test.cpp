// SPDX-License-Identifier: Apache-2.0
#include "collector/base/fork_waits.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "collector/base/clock.h"
#include "collector/base/os.h"

namespace gpuprof {
namespace {

using std::chrono::milliseconds;

constexpr uint64_t kBound = 100000000;  // ns

// As the library has them: once in a process.
void begin() { [[maybe_unused]] static const bool once = (let_forks_wait(), true); }

int open_files() {
  int count = 0;
  for (int file = 0; file < 256; ++file) count += ::fcntl(file, F_GETFD) >= 0;
  return count;
}

// What `ask` says in a child that is forked here.
int in_child(int (*ask)()) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(ask());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Fewer bounds than forks have passed: they have not waited each.
bool forks_do_not_wait() {
  const uint64_t begun = monotonic_ns();
  for (int i = 0; i < 50; ++i) in_child([] { return 0; });
  return monotonic_ns() - begun < 50 * kBound;
}

TEST(ForkWaits, ChildHasNoFileThatAnotherThreadReads) {
  begin();
  const int before = open_files();
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> reads{0};
  std::thread reader([&] {
    char text[1024];
    while (!stop) reads += read_small_file("/proc/self/stat", text, sizeof text);
  });
  int more = 0;
  for (int i = 0; i < 300; ++i) more += in_child(open_files) != before;
  stop = true;
  reader.join();
  EXPECT_EQ(more, 0);
  EXPECT_GT(reads, 300U) << "reading goes on between forks";
}

// Where the machine holds this process up, its fork gives the scope up, rightly: then once more.
TEST(ForkWaits, ForkWaitsForTheScopeOfAnotherThread) {
  begin();
  static std::atomic<int> stage;
  bool waited = false, gave_up = true;
  for (int i = 0; gave_up && i < 20; ++i) {
    stage = 0;
    std::thread holder([] {
      const ForkWaitsScope outer;
      const ForkWaitsScope inner;
      stage = 1;
      std::this_thread::sleep_for(milliseconds(30));
      stage = 2;
    });
    while (stage == 0) std::this_thread::yield();
    const uint64_t begun = monotonic_ns();
    waited = in_child([] { return stage.load(); }) == 2;
    gave_up = !waited && monotonic_ns() - begun >= kBound;
    holder.join();
  }
  EXPECT_TRUE(waited);
}

TEST(ForkWaits, ForkDoesNotWaitForItsOwnThread) {
  begin();
  const ForkWaitsScope own;
  EXPECT_TRUE(forks_do_not_wait());
  EXPECT_FALSE(a_fork_runs());
}

TEST(ForkWaits, OneForkWaitsForAScopeThatHangsAndThoseAfterItDoNot) {
  begin();
  std::atomic<int> stage{0};
  std::thread hung([&] {
    const ForkWaitsScope scope;
    stage = 1;
    while (stage != 2) std::this_thread::sleep_for(milliseconds(1));
  });
  while (stage == 0) std::this_thread::yield();
  const uint64_t begun = monotonic_ns();
  in_child([] { return 0; });
  EXPECT_GE(monotonic_ns() - begun, kBound);
  EXPECT_TRUE(forks_do_not_wait());
  stage = 2;
  hung.join();
}

TEST(ForkWaits, ChildKnowsNoForkAndNoScopeOfItsParent) {
  begin();
  EXPECT_EQ(in_child([] { return a_fork_runs() ? 8 : forks_do_not_wait() ? 7 : 9; }), 7);
}

}  // namespace
}  // namespace gpuprof
