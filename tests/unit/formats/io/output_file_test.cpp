// SPDX-License-Identifier: Apache-2.0
// Files that appear whole or not at all, and what stands at their path before.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "formats/io/file_bytes.h"
#include "formats/writers/exporter.h"
#include "tests/unit/support/trace_maker.h"

namespace gpuprof::test {
namespace {

TEST(OutputFile, IsCompleteOrAbsent) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() /
                                       ("gpuprof_output_test_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const std::string path = folder / "out.bin";
  {
    OutputFile dropped(path);
    dropped.write("half");
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder)) << "nothing is left without a commit";
  const std::string large(3 << 20, 'x');
  {
    OutputFile file(path);
    file.write("a");
    file.write(large);
    EXPECT_TRUE(file.commit());
  }
  std::string bytes, reason;
  ASSERT_TRUE(read_file(path, bytes, reason));
  EXPECT_EQ(bytes, "a" + large);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  std::filesystem::remove_all(folder);

  std::string error;
  for (const Exporter& exporter : exporters()) {
    EXPECT_FALSE(exporter.write(busy_trace(1), "/nonexistent/dir/x", {}, error));
    EXPECT_NE(error.find("/nonexistent/dir/x"), std::string::npos);
    if (exporter.directory) continue;
    EXPECT_FALSE(exporter.write(busy_trace(1), std::filesystem::temp_directory_path(), {}, error));
  }
}

TEST(OutputFile, FollowsLinksAndLeavesPipesWhatTheyAre) {
  namespace fs = std::filesystem;
  const fs::path folder =
      fs::temp_directory_path() / ("gpuprof_output_test_" + std::to_string(::getpid()));
  fs::create_directories(folder / "elsewhere");
  const auto put = [](const fs::path& path) {
    OutputFile file(path);
    file.write("new");
    return file.commit();
  };
  { std::ofstream(folder / "elsewhere/real") << "old"; }
  fs::create_symlink("elsewhere/real", folder / "link");
  EXPECT_TRUE(put(folder / "link"));
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  std::string bytes, reason;
  ASSERT_TRUE(read_file(folder / "elsewhere/real", bytes, reason));
  EXPECT_EQ(bytes, "new");
  fs::create_symlink("elsewhere/not_yet", folder / "dangling");
  EXPECT_TRUE(put(folder / "dangling"));
  EXPECT_TRUE(fs::is_symlink(folder / "dangling") && fs::exists(folder / "elsewhere/not_yet"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "elsewhere"), {}), 2);

  const int open_already = ::open((folder / "shared").c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(::write(open_already, "head ", 5), 5);
  EXPECT_TRUE(put("/dev/fd/" + std::to_string(open_already)));
  ASSERT_EQ(::write(open_already, " tail", 5), 5);
  ::close(open_already);
  ASSERT_TRUE(read_file(folder / "shared", bytes, reason));
  EXPECT_EQ(bytes, "head new tail");

  const fs::path pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  EXPECT_TRUE(put(pipe));
  char text[8] = {};
  EXPECT_EQ(::read(reader, text, sizeof text), 3);
  EXPECT_STREQ(text, "new");
  EXPECT_TRUE(fs::is_fifo(pipe));
  ::close(reader);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace gpuprof::test
