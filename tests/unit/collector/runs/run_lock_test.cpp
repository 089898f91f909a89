// SPDX-License-Identifier: Apache-2.0
// The lock that says that a run is in use: had by each process of the run, and only while the
// folder is the one at its path.
#include "collector/runs/run_lock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>

#include "collector/base/fork.h"
#include "collector/base/own_directory.h"

namespace gpuprof {
namespace {

namespace fs = std::filesystem;

class RunLockTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/gpuprof-lock-XXXXXX";
    folder_ = ::mkdtemp(name);
    path_ = folder_ + "/out/run";
  }
  void TearDown() override {
    forget();
    fs::remove_all(folder_);
  }
  static void forget() {
    for (const ForgetInChild* each = g_forget_begin; each != g_forget_end; ++each) (*each)();
  }
  bool open() { return open_run_directory(path_.c_str(), why_, sizeof why_); }
  // Whether nobody has the run's lock.
  bool is_free() const {
    const int file = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool got = file >= 0 && ::flock(file, LOCK_EX | LOCK_NB) == 0;
    ::close(file);
    return got;
  }

  std::string folder_, path_;
  char why_[1800] = {};
};

TEST_F(RunLockTest, IsHadFromTheOpeningOn) {
  ASSERT_TRUE(open()) << why_;
  EXPECT_TRUE(run_directory().was_made());
  EXPECT_FALSE(is_free());
  forget();
  EXPECT_TRUE(is_free());
  ASSERT_TRUE(open()) << why_;
  EXPECT_FALSE(run_directory().was_made());
}

// Whatever errno was before: a folder that is gone is made again, one of others is not.
TEST_F(RunLockTest, RefusesAFolderThatOthersMayWriteTo) {
  ASSERT_TRUE(open()) << why_;
  forget();
  fs::permissions(path_, fs::perms::group_write, fs::perm_options::add);
  errno = ENOENT;
  EXPECT_FALSE(open());
  EXPECT_EQ(errno, EPERM);
  EXPECT_NE(std::string(why_).find("not be writable by others"), std::string::npos) << why_;
}

TEST_F(RunLockTest, StaysWithTheParentWhereAChildForgetsIt) {
  ASSERT_TRUE(open()) << why_;
  const pid_t child = ::fork();
  if (child == 0) {
    forget();
    ::_exit(is_free() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(is_free());
}

TEST_F(RunLockTest, IsTakenAgainWhereItsDescriptorWasClosed) {
  ASSERT_TRUE(open()) << why_;
  ::close_range(3, ~0u, 0);
  EXPECT_TRUE(is_free());
  keep_run_locked();
  EXPECT_FALSE(is_free());
  keep_run_locked();
  forget();
  EXPECT_TRUE(is_free()) << "a second descriptor is left";
}

TEST_F(RunLockTest, WaitsForWhoHasItAlone) {
  fs::create_directories(path_);
  fs::permissions(path_, fs::perms::owner_all);
  const int other = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(::flock(other, LOCK_EX), 0);
  std::atomic<bool> released{false}, before{false};
  std::thread releases([&] {
    ::usleep(100000);
    released = true;
    ::close(other);
  });
  ASSERT_TRUE(open()) << why_;
  before = !released.load();
  releases.join();
  EXPECT_FALSE(before.load());
  EXPECT_FALSE(is_free());
}

// Another process removes the folder again and again, some hundred times a second; whoever has
// opened it has one that is there.
TEST_F(RunLockTest, IsOfAFolderThatIsThere) {
  std::atomic<bool> over{false};
  std::atomic<int> removed{0};
  std::thread removes([&] {
    while (!over) {
      const int file = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
      if (file < 0) continue;
      struct stat locked {
      }, named{};
      if (::flock(file, LOCK_EX | LOCK_NB) == 0 && ::fstat(file, &locked) == 0 &&
          ::lstat(path_.c_str(), &named) == 0 && locked.st_ino == named.st_ino) {
        removed += ::rmdir(path_.c_str()) == 0;
      }
      ::close(file);
      ::usleep(1000);
    }
  });
  int lost = 0;
  for (int i = 0; i < 2000; ++i) {
    EXPECT_TRUE(open()) << why_;
    const int folder = run_directory().descriptor();
    const int file = ::openat(folder, "file", O_CREAT | O_EXCL, 0600);
    lost += file < 0 || !run_directory().is_at_its_path();
    ::close(file);
    ::unlinkat(folder, "file", 0);
    forget();
  }
  over = true;
  removes.join();
  EXPECT_EQ(lost, 0);
  EXPECT_GT(removed.load(), 0);
}

}  // namespace
}  // namespace gpuprof
