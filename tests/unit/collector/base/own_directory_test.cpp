// SPDX-License-Identifier: Apache-2.0
// Directories that others may rename, or put links in the way of.
#include "collector/base/own_directory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "collector/base/own_file.h"
#include "tests/unit/support/other_user.h"

namespace gpuprof {
namespace {

namespace fs = std::filesystem;

class OwnDirectoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/gpuprof-dir-XXXXXX";
    folder_ = ::mkdtemp(name);
    path_ = folder_ + "/out/run";
  }
  void TearDown() override {
    directory_.forget();
    fs::remove_all(folder_);
  }
  bool open(const std::string& path, OwnDirectory::Kind kind = OwnDirectory::Kind::run) {
    return directory_.open(path.c_str(), kind, why_, sizeof why_);
  }
  // A file in it; true where it lies at `where`.
  bool makes_file_in(const std::string& where) {
    OwnFile file;
    const bool made = file.create(directory_, "file") && file.append("x", 1) == 0;
    file.close();
    return made && fs::exists(where + "/file");
  }

  std::string folder_, path_;
  OwnDirectory directory_;
  char why_[1800] = {};
};

TEST_F(OwnDirectoryTest, MakesWhatIsMissingForThisUserAlone) {
  ASSERT_TRUE(open(path_)) << why_;
  struct stat info {};
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
  EXPECT_TRUE(makes_file_in(path_));
}

TEST_F(OwnDirectoryTest, StaysInTheDirectoryThatWasOpened) {
  ASSERT_TRUE(open(path_)) << why_;
  fs::create_directory(folder_ + "/theirs");
  fs::rename(path_, folder_ + "/out/moved");
  fs::create_directory_symlink(folder_ + "/theirs", path_);
  EXPECT_TRUE(makes_file_in(folder_ + "/out/moved"));
  EXPECT_TRUE(fs::is_empty(folder_ + "/theirs"));
}

TEST_F(OwnDirectoryTest, IsOpenedAgainWhereItsDescriptorWasClosed) {
  ASSERT_TRUE(open(path_)) << why_;
  ::close(directory_.descriptor());
  EXPECT_TRUE(makes_file_in(path_));
}

TEST_F(OwnDirectoryTest, IsNotOpenedAgainWhereThePathLeadsElsewhere) {
  ASSERT_TRUE(open(path_)) << why_;
  const int descriptor = directory_.descriptor();
  fs::rename(path_, folder_ + "/out/moved");
  fs::create_directory(path_);
  ::close(descriptor);
  EXPECT_FALSE(makes_file_in(path_));
  EXPECT_TRUE(fs::is_empty(path_));
  EXPECT_EQ(directory_.descriptor(), -1);
  EXPECT_EQ(errno, ESTALE);
}

TEST_F(OwnDirectoryTest, SaysWhyNothingCanBeMadeInOneThatIsNotThere) {
  EXPECT_FALSE(open(path_, OwnDirectory::Kind::scratch));
  EXPECT_EQ(directory_.descriptor(), -1);
  EXPECT_EQ(errno, ENOENT);
}

TEST_F(OwnDirectoryTest, LinksOfThisUserAreFollowedButNotToTheRun) {
  fs::create_directories(folder_ + "/real");
  fs::create_directory_symlink("real", folder_ + "/out");
  ASSERT_TRUE(open(path_)) << why_;
  EXPECT_TRUE(makes_file_in(folder_ + "/real/run"));
  fs::create_directory_symlink("run", folder_ + "/real/other");
  EXPECT_FALSE(open(folder_ + "/real/other"));
}

TEST_F(OwnDirectoryTest, LinksThatGoRoundEnd) {
  fs::create_directory_symlink("b", folder_ + "/a");
  fs::create_directory_symlink("a", folder_ + "/b");
  EXPECT_FALSE(open(folder_ + "/a/run"));
}

TEST_F(OwnDirectoryTest, RunMustBeWritableByThisUserAlone) {
  fs::create_directories(path_);
  ASSERT_EQ(::chmod(path_.c_str(), 0770), 0);
  EXPECT_FALSE(open(path_));
  EXPECT_TRUE(std::string(why_).find("not be writable by others") != std::string::npos) << why_;
  EXPECT_EQ(directory_.descriptor(), -1) << "nothing can be made in it";
}

TEST_F(OwnDirectoryTest, BlocksAreNeverTakenForAFileThatHasTheNumberNow) {
  ASSERT_TRUE(open(path_));
  OwnFile file;
  ASSERT_TRUE(file.create(directory_, "ours"));
  const std::string theirs = folder_ + "/theirs";
  const int other = ::open(theirs.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(::dup2(other, file.descriptor()), file.descriptor());
  EXPECT_EQ(file.allocate(0, 100000), 0);
  EXPECT_EQ(fs::file_size(theirs), 0u);
  EXPECT_EQ(fs::file_size(path_ + "/ours"), 100000u);
  ::close(other);
  file.close();
}

TEST_F(OwnDirectoryTest, LinksOfAnotherUserAreNotFollowed) {
  if (!can_give_files_to_somebody()) GTEST_SKIP() << "needs root, and a second user";
  fs::create_directories(folder_ + "/real");
  fs::create_directory_symlink("real", folder_ + "/out");
  ASSERT_EQ(::lchown((folder_ + "/out").c_str(), kSomebody, kSomebody), 0);
  EXPECT_FALSE(open(path_));
  EXPECT_TRUE(fs::is_empty(folder_ + "/real"));
  EXPECT_TRUE(std::string(why_).find("symbolic link of user 54321") != std::string::npos) << why_;
}

TEST_F(OwnDirectoryTest, DirectoriesOfAnotherUserWhereEverybodyMayWriteAreNotEntered) {
  if (!can_give_files_to_somebody()) GTEST_SKIP() << "needs root, and a second user";
  ASSERT_EQ(::chmod(folder_.c_str(), 01777), 0);
  fs::create_directories(folder_ + "/out");
  ASSERT_EQ(::chown((folder_ + "/out").c_str(), kSomebody, kSomebody), 0);
  EXPECT_FALSE(open(path_));
  EXPECT_TRUE(fs::is_empty(folder_ + "/out"));
  ASSERT_EQ(::chmod(folder_.c_str(), 0755), 0);
  EXPECT_TRUE(open(path_)) << "root has put it there: " << why_;
}

TEST_F(OwnDirectoryTest, ScratchMayBeEverybodysButIsNotMade) {
  ASSERT_EQ(::chmod(folder_.c_str(), 01777), 0);
  EXPECT_TRUE(open(folder_, OwnDirectory::Kind::scratch)) << why_;
  EXPECT_FALSE(open(folder_ + "/none", OwnDirectory::Kind::scratch));
  EXPECT_FALSE(fs::exists(folder_ + "/none"));
}

}  // namespace
}  // namespace gpuprof
