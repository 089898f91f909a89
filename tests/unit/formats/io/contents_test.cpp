// SPDX-License-Identifier: Apache-2.0
#include "formats/io/contents.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/unit/support/dump_maker.h"

namespace gpuprof::test {
namespace {

using namespace std::string_view_literals;

TEST(Contents, KnownOnesAreNamed) {
  EXPECT_TRUE(known_contents("<!DOCTYPE HTML><p>404").starts_with("an HTML page"));
  EXPECT_TRUE(known_contents("\n <html lang=en>").starts_with("an HTML page"));
  EXPECT_EQ(known_contents("<?xml version=1?>"), "XML");
  EXPECT_TRUE(known_contents("\xff\xfe{\0\"\0"sv).starts_with("text in UTF-16"));
  EXPECT_TRUE(known_contents("{\0\"\0t\0r\0a\0"sv).starts_with("text in UTF-16"));
  EXPECT_TRUE(known_contents("\0{\0\"\0t\0r\0a"sv).starts_with("text in UTF-16"));
  EXPECT_TRUE(known_contents("PK\x03\x04").starts_with("a ZIP archive"));
  EXPECT_TRUE(known_contents("SQLite format 3\0"sv).starts_with("an SQLite database"));
  EXPECT_TRUE(known_contents("version https://git-lfs.github.com/spec/v1").find("Git LFS") !=
              std::string::npos);
  EXPECT_EQ(known_contents(" \n\t"), "blanks where a document would begin");
}

// Text that is cut within a letter, or has no end of line.
TEST(Contents, TextIsQuoted) {
  EXPECT_EQ(known_contents("loss 0.3\nloss 0.2"),
            "text that is no JSON trace; it begins \"loss 0.3\"");
  const std::string letters = "abcdefghijklmnopqrstuvw\xc3\xa4\xc3\xa4";
  EXPECT_EQ(known_contents(letters),
            "text that is no JSON trace; it begins \"abcdefghijklmnopqrstuvw\"...");
  EXPECT_FALSE(known_contents(letters.substr(0, letters.size() - 1)).empty());
}

TEST(Contents, OthersAreShownAsBytes) {
  EXPECT_EQ(known_contents("\x01\x02\xff"), "");
  EXPECT_EQ(contents_of("\x01\x02\xff"), "binary data; it begins 01 02 ff");
  EXPECT_EQ(known_contents(""), "");
}

// What they hold is looked at before they are read.
TEST(Contents, DumpsAreNotTakenForAnythingElse) {
  for (int rank = 0; rank < 200; ++rank) {
    ByteBuffer bytes;
    append(bytes, ChunkKind::header, make_header(1, rank));
    EXPECT_EQ(known_contents(view(bytes)), "");
    append_steps(bytes, {2'000'000, 3'000'000}, 12, 1);
    EXPECT_EQ(known_contents(view(bytes)), "");
  }
}

TEST(Contents, BytesOfAnySortAreTaken) {
  std::mt19937 random(7);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes(random() % 60, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    EXPECT_FALSE(contents_of(bytes).empty());
  }
}

}  // namespace
}  // namespace gpuprof::test
