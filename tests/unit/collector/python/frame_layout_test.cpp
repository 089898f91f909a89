// SPDX-License-Identifier: Apache-2.0
// Which interpreters' frames are read, and what is said of the others: by release, and by what
// _PyRuntime publishes from 3.13 on (its _Py_DebugOffsets, in words).
#include "collector/python/frame_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

namespace gpuprof {
namespace {

using Published = std::array<uint64_t, 64>;

// What 3.14 publishes first; `value` is that of every offset.
Published published(uint64_t value, bool free_threaded = false) {
  Published words;
  words.fill(value);
  std::memcpy(words.data(), "xdebugpy", 8);
  words[1] = 0x030e08f0;  // PY_VERSION_HEX
  words[2] = free_threaded;
  return words;
}

// What is said of it; "" if its frames are read.
std::string said_of(const char* version, const Published* runtime, PythonLayout* out = nullptr) {
  PythonLayout layout;
  const char* why = "";
  const bool found =
      find_python_layout(version, runtime ? runtime->data() : nullptr, out ? *out : layout, why);
  EXPECT_EQ(found, why[0] == '\0');
  return why;
}

TEST(PythonLayout, KnownReleases) {
  for (const char* version : {"3.8.18 (default)", "3.9.18", "3.10.13", "3.11.7", "3.12.1"}) {
    EXPECT_EQ(said_of(version, nullptr), "") << version;
  }
  const Published words = published(40);
  for (const char* version : {"3.13.0", "3.14.0", "3.14.10 (main", "3.15.0"}) {
    EXPECT_EQ(said_of(version, &words), "") << version;
  }
}

TEST(PythonLayout, UnknownReleases) {
  const Published words = published(40);
  for (const char* version : {"2.7.18", "3.7.16", "3.16.0a2", "4.0.0", ""}) {
    EXPECT_EQ(said_of(version, &words), "how it keeps its frames is not known") << version;
  }
  EXPECT_EQ(said_of("3.14.0", nullptr), "how it keeps its frames is not known");
}

// Places of the offsets read, as offsetof() in _Py_DebugOffsets gives them with a release's
// headers.
struct Places {
  const char* version;
  uint16_t thread[4];  // prev, interp, current_frame, native_thread_id
  uint16_t frame[4];   // previous, executable, instr_ptr, owner
  uint16_t code[5];    // filename, qualname, linetable, firstlineno, co_code_adaptive
};

TEST(PythonLayout, OffsetsAsPublished) {
  constexpr Places kReleases[] = {
      {"3.14.8", {23, 25, 26, 28}, {32, 33, 34, 36}, {40, 42, 43, 44, 48}},
      {"3.15.0", {23, 25, 26, 31}, {40, 41, 42, 44}, {48, 50, 51, 52, 56}},
  };
  Published words = published(0);
  for (size_t i = 3; i < words.size(); ++i) words[i] = i;
  for (const Places& expected : kReleases) {
    PythonLayout l;
    ASSERT_EQ(said_of(expected.version, &words, &l), "");
    const uint16_t thread[] = {l.thread_previous, l.thread_interpreter, l.frame, l.thread_id};
    const uint16_t frame[] = {l.frame_previous, l.frame_code, l.frame_instruction, l.frame_owner};
    const uint16_t code[] = {l.code_file, l.code_name, l.code_line_table, l.code_first_line,
                             l.code_bytes};
    EXPECT_TRUE(std::ranges::equal(thread, expected.thread)) << expected.version;
    EXPECT_TRUE(std::ranges::equal(frame, expected.frame)) << expected.version;
    EXPECT_TRUE(std::ranges::equal(code, expected.code)) << expected.version;
    EXPECT_EQ(l.cframe_frame, kNoField);
    EXPECT_TRUE(l.native && l.loops_have_frames());
  }
}

TEST(PythonLayout, WhatCannotBeIsRefused) {
  for (const char* version : {"3.13.0", "3.14.8", "3.15.0"}) {
    const Published free_threaded = published(40, true);
    EXPECT_EQ(said_of(version, &free_threaded),
              "it is a free-threaded build, whose frames are not read");
    const Published far_away = published(4096);
    EXPECT_EQ(said_of(version, &far_away), "where it says that it keeps its frames cannot be");
    Published other = published(40);
    other[0] = 0;
    EXPECT_EQ(said_of(version, &other), "it does not publish where it keeps its frames");
  }
}

}  // namespace
}  // namespace gpuprof
