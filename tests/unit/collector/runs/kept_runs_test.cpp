// SPDX-License-Identifier: Apache-2.0
// Which runs GPUPROF_KEEP lets stay, and that nothing goes but files of ours of a run that nobody
// uses.
#include "collector/runs/kept_runs.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "formats/core/runs/run_files.h"
#include "tests/unit/support/other_user.h"

namespace gpuprof {
namespace {

namespace fs = std::filesystem;
constexpr uint64_t kSecond = 1000000000, kMinute = 60 * kSecond, kDay = 24 * 60 * kMinute;
constexpr uint64_t kGigabyte = 1000000000, kBudgetNs = 10 * kSecond;

TEST(RunFiles, AreKnownByTheirNames) {
  struct Case {
    const char* name;
    RunFileKind kind;
    uint32_t pid;
  };
  const Case good[] = {
      {"node-1_r0_12_99_w0.gpuprof", RunFileKind::dump, 12},
      {"node_r_3_r17_4194304_1764163763000000000_w12.gpuprof.part", RunFileKind::dump, 4194304},
      {"h_r0_12_99_early3.gpuprof", RunFileKind::dump, 12},
      {"h_r0_12_99_w0.gpuprof.new", RunFileKind::dump, 12},
      {"h_r0_12_99.gpuprof.ring", RunFileKind::ring, 12},
      {"h_r0_12_99.gpuprof.state", RunFileKind::control, 12},
      {"h_r0_12_99.gpuprof.state.part", RunFileKind::control, 12},
      {"h_r0_12_99.control", RunFileKind::control, 12},
      {"gpuprof.control", RunFileKind::control, 0},
  };
  for (const Case& each : good) {
    RunFile file;
    ASSERT_TRUE(parse_run_file(each.name, file)) << each.name;
    EXPECT_EQ(file.kind, each.kind) << each.name;
    EXPECT_EQ(file.pid, each.pid) << each.name;
  }
  for (const char* const name :
       {"", ".", "..", "notes.txt", "model.gpuprof", "h_r0_12_99.gpuprof", "h_r0_12_w0.gpuprof",
        "h_r0_12_99_w.gpuprof", "h_r0_12_99_w0.gpuprof.gz", "h_r0_12_99_w0.gpuprof.part.part",
        "h_rx_12_99_w0.gpuprof", "h_r0_0_99_w0.gpuprof", "_r0_12_99_w0.gpuprof",
        "h_r0_2147483648_99_w0.gpuprof", "h_r0_12_99_w0.gpuprof~", "control", "r0_12_99.control",
        "gpuprof.control.old", "h_r0_12_99.ring"}) {
    RunFile file;
    EXPECT_FALSE(parse_run_file(name, file)) << name;
  }
}

TEST(RunFiles, WhatIsMadeOfThemIsKnownByItsName) {
  for (const char* const name :
       {"report.html", "report.json", "trace.pftrace", "trace.json", "trace.speedscope.json",
        "trace.pickle", "h_r0_12_99_w0.gpuprof.html", "h_r0_12_99_w0.pftrace",
        "h_r0_12_99_early3.json", "h_r0_12_99_w12.speedscope.json", "h_r0_12_99_w0.pickle"}) {
    EXPECT_TRUE(is_made_of_run(name)) << name;
    RunFile file;
    EXPECT_FALSE(parse_run_file(name, file)) << name << " alone makes no run";
  }
  for (const char* const name :
       {"", "index.html", "report.htm", "my-report.html", "trace.kineto", "trace.json.gz",
        "trace.txt", "h_r0_12_99.pftrace", "h_r0_12_w0.pftrace", "h_r0_12_99_w0.html",
        "r0_12_99_w0.json", "report.md"}) {
    EXPECT_FALSE(is_made_of_run(name)) << name;
  }
}

TEST(RunFiles, FoldersWithoutAnotherNameTellWhoStartedTheRun) {
  char name[64];
  format_started_run(1'800'000'000, 4194304, name, sizeof name);
  EXPECT_STREQ(name, "20270115T080000Z-4194304");
  EXPECT_EQ(parent_of_started_run(name), 4194304u);
  for (const char* const other :
       {"", "job-12", "20270115T080000Z", "20270115T080000Z-", "20270115T080000-12",
        "x20270115T080000Z-12", "2027011ST080000Z-12", "20270115T080000Z-12-3",
        "20270115T080000Z-99999999999"}) {
    EXPECT_EQ(parent_of_started_run(other), 0u) << other;
  }
  char odd[] = "a/b\nc";
  make_folder_name(odd);
  EXPECT_STREQ(odd, "a_b_c");
}

RunEntry entry(const char* name, uint64_t changed_ns, uint64_t bytes, bool stays = false) {
  RunEntry out{};
  std::strncpy(out.name, name, sizeof out.name - 1);
  out.changed_ns = changed_ns;
  out.bytes = bytes;
  out.stays = stays;
  return out;
}

// Names of those that stay, newest first.
std::string kept(std::vector<RunEntry> runs, const KeepSpec& keep, uint64_t now_ns) {
  choose_runs(runs.data(), runs.size(), keep, now_ns);
  std::string out;
  for (const RunEntry& run : runs) out += run.goes ? "" : run.name;
  return out;
}

TEST(KeptRuns, AreTheNewestWithinEachLimit) {
  const uint64_t now = 1000 * kDay;
  const std::vector<RunEntry> runs = {
      entry("c", now - 3 * kDay, kGigabyte), entry("a", now - kDay, kGigabyte),
      entry("d", now - 4 * kDay, kGigabyte), entry("b", now - 2 * kDay, kGigabyte)};
  EXPECT_EQ(kept(runs, {}, now), "abcd");
  EXPECT_EQ(kept(runs, {2, 0, 0}, now), "ab");
  EXPECT_EQ(kept(runs, {4, 0, 0}, now), "abcd");
  EXPECT_EQ(kept(runs, {0, 3 * kGigabyte, 0}, now), "abc");
  EXPECT_EQ(kept(runs, {0, 3 * kGigabyte - 1, 0}, now), "ab");
  EXPECT_EQ(kept(runs, {0, 0, 3 * kDay / kSecond}, now), "ab");
  EXPECT_EQ(kept(runs, {0, 0, 3 * kDay / kSecond + 1}, now), "abc");
  EXPECT_EQ(kept(runs, {3, 0, 2 * kDay / kSecond}, now), "a");
  EXPECT_EQ(kept(runs, {1, 9 * kGigabyte, 9 * kDay}, now), "a");
}

TEST(KeptRuns, HaveThoseThatStayAnywayAndTheRecentOnes) {
  const uint64_t now = 1000 * kDay;
  const std::vector<RunEntry> runs = {
      entry("a", now + kDay, kGigabyte), entry("b", now - kRecentNs + 1, kGigabyte),
      entry("c", now - kRecentNs, kGigabyte), entry("d", now - kDay, kGigabyte, true),
      entry("e", now - 2 * kDay, kGigabyte)};
  EXPECT_EQ(kept(runs, {1, 0, 0}, now), "abd");
  EXPECT_EQ(kept(runs, {0, 1, 0}, now), "abd");
  EXPECT_EQ(kept(runs, {0, 0, 1}, now), "abd");
}

class RemoveRunTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/gpuprof-keep-XXXXXX";
    folder_ = ::mkdtemp(name);
    fs::create_directory(folder_ + "/run");
    fs::permissions(folder_ + "/run", fs::perms::owner_all);
    above_ = ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    now_ns_ = static_cast<uint64_t>(now.tv_sec) * kSecond;
    for (const char* const each : {"h_r0_12_99_w0.gpuprof", "h_r0_12_99_w1.gpuprof.part",
                                   "h_r0_12_99.gpuprof.ring", "gpuprof.control"}) {
      make(std::string("run/") + each);
    }
  }
  void TearDown() override {
    ::close(above_);
    fs::remove_all(folder_);
  }

  // A file of an hour ago, unless something else is said.
  void make(const std::string& name, uint64_t age_ns = 60 * kMinute) {
    std::ofstream(folder_ + "/" + name) << std::string(5000, 'x');
    age(name, age_ns);
  }
  void age(const std::string& name, uint64_t age_ns) {
    const timespec changed{static_cast<time_t>((now_ns_ - age_ns) / kSecond), 0};
    const timespec both[2] = {changed, changed};
    ASSERT_EQ(::utimensat(AT_FDCWD, (folder_ + "/" + name).c_str(), both, AT_SYMLINK_NOFOLLOW), 0);
  }
  // The stem of a session that this process's child could have begun.
  static std::string stem_of(pid_t pid, uint64_t begun_ns) {
    return "h_r0_" + std::to_string(pid) + "_" + std::to_string(begun_ns);
  }
  Removal remove(uint64_t budget_ns = kBudgetNs) {
    return remove_run(above_, entry("run", 0, 0), now_ns_, budget_ns, removed_);
  }
  std::string left() const {
    std::map<std::string, int> names;
    for (const auto& each : fs::directory_iterator(folder_ + "/run")) {
      names[each.path().filename()] = 1;
    }
    std::string out;
    for (const auto& [name, one] : names) out += name + " ";
    return out;
  }

  const std::string all_ =
      "gpuprof.control h_r0_12_99.gpuprof.ring h_r0_12_99_w0.gpuprof h_r0_12_99_w1.gpuprof.part ";
  std::string folder_;
  int above_ = -1;
  uint64_t now_ns_ = 0;
  Removed removed_{};
};

TEST_F(RemoveRunTest, TakesAwayAnOldRunWithItsFolder) {
  RunEntry run = entry("run", 0, 0);
  ASSERT_TRUE(look_at_run(above_, run));
  EXPECT_EQ(run.changed_ns, now_ns_ - 60 * kMinute);
  EXPECT_GE(run.bytes, 4 * 5000u);
  EXPECT_EQ(remove(), Removal::done);
  EXPECT_FALSE(fs::exists(folder_ + "/run"));
  EXPECT_EQ(removed_.files, 4u);
  EXPECT_EQ(removed_.bytes, run.bytes);
}

TEST_F(RemoveRunTest, TakesWhatWasMadeOfItAway) {
  make("run/report.html", 30 * kMinute);
  make("run/h_r0_12_99_w0.pftrace");
  RunEntry run = entry("run", 0, 0);
  ASSERT_TRUE(look_at_run(above_, run));
  EXPECT_EQ(run.changed_ns, now_ns_ - 30 * kMinute);
  EXPECT_GE(run.bytes, 6 * 5000u);
  EXPECT_EQ(remove(), Removal::done);
  EXPECT_FALSE(fs::exists(folder_ + "/run"));
  EXPECT_EQ(removed_.files, 6u);
}

TEST_F(RemoveRunTest, LeavesAFolderThatIsNoRunThoughItHasAReport) {
  for (const auto& each : fs::directory_iterator(folder_ + "/run")) fs::remove(each);
  make("run/report.html");
  make("run/trace.json");
  RunEntry run = entry("run", 0, 0);
  EXPECT_FALSE(look_at_run(above_, run));
  remove();
  EXPECT_EQ(left(), "report.html trace.json ");
}

TEST_F(RemoveRunTest, KeepsARunWhoseReportWasMadeJustNow) {
  make("run/report.html", kRecentNs / 2);
  EXPECT_EQ(remove(), Removal::kept);
  EXPECT_EQ(left(), all_ + "report.html ");
}

TEST_F(RemoveRunTest, LeavesWhatIsNotOurs) {
  make("run/notes.txt");
  make("run/h_r0_12_99_w0.gpuprof.gz");
  make("theirs");
  fs::create_directory(folder_ + "/run/h_r0_12_99_w5.gpuprof");
  fs::create_symlink(folder_ + "/theirs", folder_ + "/run/h_r0_12_99_w6.gpuprof");
  fs::create_symlink(folder_ + "/theirs", folder_ + "/run/h_r0_13_99.gpuprof.ring");
  age("run/h_r0_13_99.gpuprof.ring", 60 * kMinute);
  EXPECT_EQ(remove(), Removal::done);
  EXPECT_EQ(left(),
            "h_r0_12_99_w0.gpuprof.gz h_r0_12_99_w5.gpuprof h_r0_12_99_w6.gpuprof notes.txt ");
  EXPECT_EQ(fs::file_size(folder_ + "/theirs"), 5000u);
  RunEntry run = entry("run", 0, 0);
  EXPECT_FALSE(look_at_run(above_, run)) << "a folder without a file of ours is no run";
}

TEST_F(RemoveRunTest, LeavesFilesAndFoldersOfOthers) {
  if (!can_give_files_to_somebody()) GTEST_SKIP() << "needs root, and a second user";
  const std::string file = folder_ + "/run/h_r0_12_99_w0.gpuprof";
  ASSERT_EQ(::chown(file.c_str(), kSomebody, kSomebody), 0);
  EXPECT_EQ(remove(), Removal::done);
  EXPECT_EQ(left(), "h_r0_12_99_w0.gpuprof ");
  ASSERT_EQ(::chown(file.c_str(), 0, 0), 0);
  ASSERT_EQ(::chown((folder_ + "/run").c_str(), kSomebody, kSomebody), 0);
  EXPECT_EQ(remove(), Removal::kept);
  EXPECT_EQ(left(), "h_r0_12_99_w0.gpuprof ");
}

TEST_F(RemoveRunTest, LeavesAFolderThatOthersMayWriteTo) {
  fs::permissions(folder_ + "/run", fs::perms::group_write, fs::perm_options::add);
  EXPECT_EQ(remove(), Removal::kept);
  EXPECT_EQ(left(), all_);
}

TEST_F(RemoveRunTest, FollowsNoLinkToAFolder) {
  fs::rename(folder_ + "/run", folder_ + "/other");
  fs::create_directory_symlink("other", folder_ + "/run");
  EXPECT_EQ(remove(), Removal::kept);
  fs::rename(folder_ + "/other", folder_ + "/moved");
  fs::remove(folder_ + "/run");
  fs::rename(folder_ + "/moved", folder_ + "/run");
  EXPECT_EQ(left(), all_);
}

TEST_F(RemoveRunTest, LeavesARunThatChangedLately) {
  make("run/h_r0_12_99_w2.gpuprof", kRecentNs - 10 * kSecond);
  EXPECT_EQ(remove(), Removal::kept);
  EXPECT_EQ(left(),
            "gpuprof.control h_r0_12_99.gpuprof.ring h_r0_12_99_w0.gpuprof "
            "h_r0_12_99_w1.gpuprof.part h_r0_12_99_w2.gpuprof ");
  age("run/h_r0_12_99_w2.gpuprof", kRecentNs + 10 * kSecond);
  EXPECT_EQ(remove(), Removal::done);
}

TEST_F(RemoveRunTest, LeavesARunThatSomebodyHasLocked) {
  const int lock = ::open((folder_ + "/run").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(::flock(lock, LOCK_SH), 0);
  EXPECT_EQ(remove(), Removal::kept);
  EXPECT_EQ(left(), all_);
  ::close(lock);
  EXPECT_EQ(remove(), Removal::done);
}

TEST_F(RemoveRunTest, LeavesARunOfAProcessThatLives) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  const std::string live = "run/" + stem_of(child, now_ns_ + kMinute) + ".gpuprof.ring";
  make(live);
  EXPECT_EQ(remove(), Removal::kept);
  // A process of that number that started later is another one.
  fs::rename(folder_ + "/" + live,
             folder_ + "/run/" + stem_of(child, now_ns_ - 60 * kMinute) + "_w0.gpuprof");
  EXPECT_EQ(remove(), Removal::done);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST_F(RemoveRunTest, GoesOnWhereItsTimeWasOver) {
  Removal done = Removal::part;
  int pieces = 0;
  for (; done == Removal::part && pieces < 1000; ++pieces) done = remove(1);
  EXPECT_EQ(done, Removal::part) << "nothing can be done in a nanosecond";
  EXPECT_EQ(remove(), Removal::done);
  EXPECT_FALSE(fs::exists(folder_ + "/run"));
}

TEST_F(RemoveRunTest, LeavesTheLockToNobody) {
  make("run/notes.txt");
  EXPECT_EQ(remove(), Removal::done);
  const int lock = ::open((folder_ + "/run").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  EXPECT_EQ(::flock(lock, LOCK_EX | LOCK_NB), 0);
  ::close(lock);
}

}  // namespace
}  // namespace gpuprof
