// SPDX-License-Identifier: Apache-2.0
// Folders of baselines: what they hold of a run, and under which names.
#include "tools/baseline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace gpuprof {
namespace {

namespace fs = std::filesystem;

class BaselineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/gpuprof_baseline_XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  void TearDown() override { fs::remove_all(folder_); }

  // A file that holds its own path.
  std::string file(const std::string& name) {
    const fs::path path = folder_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << name;
    return path.string();
  }
  // What lies there, by name, without what only tells that `add_baseline` copied it.
  static std::map<std::string, std::string> content(const fs::path& folder) {
    std::map<std::string, std::string> out;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      if (entry.path().filename() == ".gpuprof-added") continue;
      std::stringstream text;
      text << std::ifstream(entry.path()).rdbuf();
      out[entry.path().filename().string()] = text.str();
    }
    return out;
  }

  fs::path folder_;
};

using Content = std::map<std::string, std::string>;

TEST_F(BaselineTest, EachRunHasTheNextNumber) {
  const std::string baseline = (folder_ / "baseline").string(), run = file("a/x_w0.gpuprof");
  EXPECT_EQ(newest_baseline(baseline), "");
  EXPECT_EQ(add_baseline(baseline, {run}).folder, baseline + "/0001");
  EXPECT_EQ(add_baseline(baseline, {run}).folder, baseline + "/0002");
  EXPECT_EQ(newest_baseline(baseline), baseline + "/0002");
  EXPECT_EQ(content(baseline + "/0002"), (Content{{"x_w0.gpuprof", "a/x_w0.gpuprof"}}));
}

// A ring is found by the name of its part.
TEST_F(BaselineTest, FilesOfAFolderAreRenamedAlike) {
  const std::vector<std::string> files = {file("a/x_w0.gpuprof.part"), file("a/x.gpuprof.ring"),
                                          file("b/y_w0.gpuprof"),      file("b/x_w0.gpuprof.part"),
                                          file("b/x.gpuprof.ring"),    file("c/1_y_w0.gpuprof"),
                                          file("c/x.gpuprof.ring")};
  const std::string added = add_baseline((folder_ / "baseline").string(), files).folder;
  EXPECT_EQ(content(added), (Content{{"x_w0.gpuprof.part", "a/x_w0.gpuprof.part"},
                                     {"x.gpuprof.ring", "a/x.gpuprof.ring"},
                                     {"1_y_w0.gpuprof", "b/y_w0.gpuprof"},
                                     {"1_x_w0.gpuprof.part", "b/x_w0.gpuprof.part"},
                                     {"1_x.gpuprof.ring", "b/x.gpuprof.ring"},
                                     {"2_1_y_w0.gpuprof", "c/1_y_w0.gpuprof"},
                                     {"2_x.gpuprof.ring", "c/x.gpuprof.ring"}}));
}

TEST_F(BaselineTest, AFileThatIsNamedTwiceIsThereTwice) {
  const std::string run = file("a/trace.json");
  const std::string added = add_baseline((folder_ / "baseline").string(), {run, run}).folder;
  EXPECT_EQ(content(added),
            (Content{{"trace.json", "a/trace.json"}, {"1_trace.json", "a/trace.json"}}));
}

// The folders of runs, in order.
std::vector<std::string> runs(const fs::path& baseline) {
  std::vector<std::string> out;
  for (const fs::directory_entry& entry : fs::directory_iterator(baseline)) {
    out.push_back(entry.path().filename().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

TEST_F(BaselineTest, TheNewestTenRunsStay) {
  const std::string baseline = (folder_ / "baseline").string();
  const std::vector<std::string> files = {file("a/x_w0.gpuprof"), file("b/x_w0.gpuprof")};
  for (int number = 1; number <= 10; ++number) {
    EXPECT_TRUE(add_baseline(baseline, files).removed.empty());
  }
  EXPECT_EQ(add_baseline(baseline, files).removed, std::vector{baseline + "/0001"});
  EXPECT_EQ(add_baseline(baseline, files).removed, std::vector{baseline + "/0002"});
  const std::vector<std::string> left = runs(baseline);
  EXPECT_EQ(left.size(), 10u);
  EXPECT_EQ(left.front(), "0003");
  EXPECT_EQ(left.back(), "0012");
  EXPECT_EQ(newest_baseline(baseline), baseline + "/0012");
}

// What somebody put there, or has put beside what was added, is theirs.
TEST_F(BaselineTest, RunsOfOthersStay) {
  const std::string run = file("a/x_w0.gpuprof");
  const fs::path baseline = folder_ / "baseline", elsewhere = folder_ / "elsewhere";
  file("baseline/0001/by_hand_w0.gpuprof");
  for (int number = 2; number <= 5; ++number) add_baseline(baseline.string(), {run});
  file("baseline/0002/notes.txt");
  fs::create_directory(baseline / "0003/folder");
  fs::rename(baseline / "0004", elsewhere);
  fs::create_directory_symlink(elsewhere, baseline / "0004");
  for (int number = 6; number <= 20; ++number) add_baseline(baseline.string(), {run});
  const std::vector<std::string> left = runs(baseline);
  EXPECT_EQ(left,
            (std::vector<std::string>{"0001", "0002", "0003", "0004", "0011", "0012", "0013",
                                      "0014", "0015", "0016", "0017", "0018", "0019", "0020"}));
  EXPECT_EQ(content(baseline / "0002").size(), 2u);
  EXPECT_EQ(content(elsewhere).size(), 1u);
}

}  // namespace
}  // namespace gpuprof
