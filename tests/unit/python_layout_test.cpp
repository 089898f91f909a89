// SPDX-License-Identifier: Apache-2.0
// Which interpreters' frames are read, and what is said of the others: by release, and by what
// _PyRuntime publishes from 3.13 on (its _Py_DebugOffsets, in words).
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "collector/python/layout.h"

namespace gpuprof {
namespace {

using Published = std::array<uint64_t, 64>;

// The first fields of what 3.14 publishes; `value` is that of every offset.
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
  for (const char* version : {"3.13.0", "3.14.0", "3.14.10 (main"}) {
    EXPECT_EQ(said_of(version, &words), "") << version;
  }
}

TEST(PythonLayout, UnknownReleases) {
  const Published words = published(40);
  for (const char* version : {"2.7.18", "3.7.16", "3.15.0a2", "4.0.0", ""}) {
    EXPECT_EQ(said_of(version, &words), "how it keeps its frames is not known") << version;
  }
  EXPECT_EQ(said_of("3.14.0", nullptr), "how it keeps its frames is not known");
}

// Built with the headers of 3.14.8, offsetof() in _Py_DebugOffsets gave these places.
TEST(PythonLayout, OffsetsAsPublishedBy314) {
  Published words = published(0);
  for (size_t i = 3; i < words.size(); ++i) words[i] = i;
  PythonLayout layout;
  ASSERT_EQ(said_of("3.14.8", &words, &layout), "");
  EXPECT_EQ(layout.thread_previous, 23);
  EXPECT_EQ(layout.thread_interpreter, 25);
  EXPECT_EQ(layout.frame, 26);
  EXPECT_EQ(layout.thread_id, 28);
  EXPECT_EQ(layout.frame_previous, 32);
  EXPECT_EQ(layout.frame_code, 33);
  EXPECT_EQ(layout.frame_instruction, 34);
  EXPECT_EQ(layout.frame_owner, 36);
  EXPECT_EQ(layout.code_file, 40);
  EXPECT_EQ(layout.code_name, 42);
  EXPECT_EQ(layout.code_line_table, 43);
  EXPECT_EQ(layout.code_first_line, 44);
  EXPECT_EQ(layout.code_bytes, 48);
  EXPECT_EQ(layout.cframe_frame, kNoField);
  EXPECT_TRUE(layout.native);
  EXPECT_TRUE(layout.loops_have_frames());
}

TEST(PythonLayout, WhatCannotBeIsRefused) {
  for (const char* version : {"3.13.0", "3.14.8"}) {
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
