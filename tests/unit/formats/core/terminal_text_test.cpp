// SPDX-License-Identifier: Apache-2.0
// What acts on a terminal is spelled out, everything else stays.
#include "formats/core/terminal_text.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "formats/io/utf8.h"

namespace gpuprof {
namespace {

std::string escape(std::string_view text, Layout layout = Layout::one_line) {
  std::string out;
  escape_for_terminal(text, layout, [&](std::string_view piece) { out += piece; });
  return out;
}

TEST(TerminalText, TextStays) {
  for (const std::string text :
       {"", "void gemm<float>(float*)", "größe \u20ac \U0001f600", "a\\u001b"}) {
    EXPECT_EQ(escape(text), text);
  }
}

TEST(TerminalText, ControlsAreSpelledOut) {
  EXPECT_EQ(escape("\x1b]0;title\x07"), "\\u001b]0;title\\u0007");
  EXPECT_EQ(escape(std::string("a\0b", 3)), "a\\u0000b");
  EXPECT_EQ(escape("\x7f"), "\\u007f");
  EXPECT_EQ(escape("\xc2\x80 \xc2\x9b \xc2\x9f \xc2\xa0"), "\\u0080 \\u009b \\u009f \xc2\xa0");
}

TEST(TerminalText, DirectionsAreSpelledOut) {
  EXPECT_EQ(escape("\u202a\u202b\u202c\u202d\u202e"), "\\u202a\\u202b\\u202c\\u202d\\u202e");
  EXPECT_EQ(escape("\u2066\u2067\u2068\u2069"), "\\u2066\\u2067\\u2068\\u2069");
  EXPECT_EQ(escape("\u061c\u200e\u200f\u2028\u2029"), "\\u061c\\u200e\\u200f\\u2028\\u2029");
}

TEST(TerminalText, LineBreaksAreKeptWhereLinesAre) {
  EXPECT_EQ(escape("a\n\tb\r", Layout::lines), "a\n\tb\\u000d");
  EXPECT_EQ(escape("a\n\tb\r"), "a\\u000a\\u0009b\\u000d");
}

TEST(TerminalText, BytesThatAreNoTextAreReplaced) {
  EXPECT_EQ(escape("\x9b"
                   "2J \xff \xe2\x80"),
            "\ufffd2J \ufffd \ufffd\ufffd");
  EXPECT_EQ(escape("\xc0\x9b"), "\ufffd\ufffd") << "an overlong escape";
}

TEST(TerminalText, NothingPassesWhateverTheBytes) {
  std::mt19937 random(18);
  for (int round = 0; round < 20000; ++round) {
    std::string text(random() % 24, '\0');
    for (char& c : text) c = static_cast<char>(round % 2 ? random() : 0x80 + random() % 0x70);
    const std::string out = escape(text);
    ASSERT_TRUE(is_valid_utf8(out));
    ASSERT_EQ(escape(out), out);
    for (size_t i = 0; i < out.size(); ++i) {
      const auto byte = static_cast<uint8_t>(out[i]);
      ASSERT_FALSE(byte < 0x20 || byte == 0x7f);
      ASSERT_FALSE(byte == 0xc2 && static_cast<uint8_t>(out[i + 1]) < 0xa0);
      ASSERT_FALSE(out.compare(i, 2, "\xe2\x80") == 0 && static_cast<uint8_t>(out[i + 2]) >= 0xa8 &&
                   static_cast<uint8_t>(out[i + 2]) <= 0xae);
    }
  }
}

}  // namespace
}  // namespace gpuprof
