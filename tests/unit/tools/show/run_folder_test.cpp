// SPDX-License-Identifier: Apache-2.0
// Which folder is the run of a program that has ended, where others record beside it.
#include "tools/show/run_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "formats/core/runs/run_files.h"

namespace gpuprof::test {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSecond = 1'000'000'000, kStarted = 1'800'000'000 * kSecond;
constexpr EndedProgram kProgram = {kStarted, 200, 100};

class RunFolderOf : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/gpuprof-folder-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    output_ = name;
  }
  void TearDown() override { fs::remove_all(output_); }

  // A file of a session that began so many seconds after the program, in a run's folder.
  void add(const std::string& run, int seconds, int pid, const std::string& end = "_w0.gpuprof") {
    fs::create_directories(output_ + "/" + run);
    std::ofstream(output_ + "/" + run + "/node_r0_" + std::to_string(pid) + "_" +
                  std::to_string(kStarted + seconds * kSecond) + end);
  }
  static std::string started_run(int seconds, uint32_t parent) {
    char name[64];
    format_started_run(static_cast<time_t>(kStarted / kSecond + seconds), parent, name,
                       sizeof name);
    return name;
  }
  // The name of the folder, "?" behind it where it is not sure; or of all that may be it.
  std::string found(const std::string& named = "", bool only_named = false) const {
    const RunFolder folder = find_run_folder(output_, named, only_named, kProgram);
    std::string out;
    for (const std::string& other : folder.others) out += name_of(other) + " ";
    return out + (folder.path.empty() ? "" : name_of(folder.path) + (folder.sure ? "" : "?"));
  }

  std::string output_;

 private:
  std::string name_of(const std::string& path) const {
    EXPECT_TRUE(path.starts_with(output_ + "/")) << path;
    return path.substr(output_.size() + 1);
  }
};

TEST_F(RunFolderOf, AProgramIsNamedByWhoStartedIt) {
  EXPECT_EQ(found(), "");
  add("another", 1, 999);
  fs::create_directory_symlink("another", output_ + "/latest");
  add(started_run(-50, 100), 1, 200);
  EXPECT_EQ(found(), started_run(-50, 100));
}

TEST_F(RunFolderOf, AProgramThatStartsItsProcessesIsTheirRunsName) {
  add("another", 1, 999);
  add(started_run(0, 200), 1, 201);
  EXPECT_EQ(found(), started_run(0, 200));
}

TEST_F(RunFolderOf, WhatTheProgramItselfWroteIsItsOwn) {
  add("another", 1, 999);
  add("of-a-profiled-ancestor", -90, 50);
  add("of-a-profiled-ancestor", 1, 200);
  EXPECT_EQ(found(), "of-a-profiled-ancestor");
}

TEST_F(RunFolderOf, ANameThatWasGivenComesFirst) {
  add(started_run(-50, 100), 1, 200);
  add("mine", 1, 201);
  EXPECT_EQ(found("mine", true), "mine");
  EXPECT_EQ(found("absent", true), "") << "it can have no other";
  EXPECT_EQ(found("absent", false), started_run(-50, 100)) << "a job's id may be another below";
}

TEST_F(RunFolderOf, EarlierSessionsAreNoneOfIt) {
  add("another", -1, 999);
  add(started_run(-50, 100), -9, 98);  // another program of this shell
  fs::create_directories(output_ + "/empty");
  add("triggered", 1, 300, ".control");
  EXPECT_EQ(found(), "");
}

TEST_F(RunFolderOf, AProcessBelowMayHaveARunOfItsOwn) {
  add(started_run(1, 300), 2, 301);
  EXPECT_EQ(found(), started_run(1, 300) + "?");
  add("job7", 2, 400);
  EXPECT_EQ(found(), started_run(1, 300) + " job7 ");
}

TEST_F(RunFolderOf, RunsThatSomebodyElseStartedAreNot) {
  add(started_run(-5, 77), 2, 400);  // by a process that was there before
  EXPECT_EQ(found(), "");
  add("live", 2, 401);
  const int file = ::open((output_ + "/live").c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(::flock(file, LOCK_SH), 0);
  EXPECT_EQ(found(), "") << "the program has ended, this run goes on";
  ::close(file);
  EXPECT_EQ(found(), "live?");
}

TEST_F(RunFolderOf, ARingSaysThatItsProcessWasKilled) {
  add("run", -9, 98, ".gpuprof.ring");
  add("run", 1, 200);
  EXPECT_FALSE(has_ring_since(output_ + "/run", kStarted));
  add("run", 1, 200, ".gpuprof.ring");
  EXPECT_TRUE(has_ring_since(output_ + "/run", kStarted));
  EXPECT_TRUE(has_ring_since(output_ + "/run", kStarted, 200));
  EXPECT_FALSE(has_ring_since(output_ + "/run", kStarted, 201)) << "that one ended as it should";
}

}  // namespace
}  // namespace gpuprof::test
