// SPDX-License-Identifier: Apache-2.0
// The text of requests, and how a command line is taken apart.
#include "formats/core/trigger/request.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "formats/core/command_line.h"

namespace gpuprof {
namespace {

TEST(Control, RequestAndBack) {
  for (const ControlCommand command :
       {ControlCommand::window, ControlCommand::off, ControlCommand::on}) {
    const ControlRequest request{1763700000123456789, command, 120, 10};
    char text[kControlFileBytes];
    const size_t size = format_control(request, text);
    ControlRequest read{};
    ASSERT_TRUE(parse_control({text, size}, read)) << text;
    EXPECT_EQ(read.id, request.id);
    EXPECT_EQ(read.command, command);
    EXPECT_EQ(read.step, 120u);
    EXPECT_EQ(read.steps, 10u);
    for (size_t cut = 0; cut < size; ++cut) {
      EXPECT_FALSE(parse_control({text, cut}, read)) << "cut after " << cut;
    }
  }
}

TEST(Control, WhatIsNoRequest) {
  ControlRequest read{};
  for (const char* text :
       {"", "\n", "gpuprof-control-2 1 window 2 3\n", "gpuprof-control-1 1 stop 2 3\n",
        "gpuprof-control-1 x window 2 3\n", "gpuprof-control-1 1 window -2 3\n",
        "gpuprof-control-1 1 window 2 3 4\n"}) {
    EXPECT_FALSE(parse_control(text, read)) << text;
  }
}

std::vector<std::string> words(const char* text) {
  auto line = std::make_unique<CommandLine>();
  const char* problem = nullptr;
  if (!split_command(text, "/d/x y.gpuprof", *line, &problem)) return {std::string("!") + problem};
  return {line->words, line->words + line->count};
}

TEST(CommandLine, Words) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(words("cp {} /archive/"), (Words{"cp", "/d/x y.gpuprof", "/archive/"}));
  EXPECT_EQ(words("  up --file={}\t'two words' \"it's\" a'b 'c"),
            (Words{"up", "--file=/d/x y.gpuprof", "two words", "it's", "ab c"}));
  EXPECT_EQ(words("run $HOME;ls '' {"), (Words{"run", "$HOME;ls", "", "{"})) << "no shell";
  EXPECT_EQ(words("say {}{}"), (Words{"say", "/d/x y.gpuprof/d/x y.gpuprof"}));
}

TEST(CommandLine, WhatIsRefused) {
  EXPECT_EQ(words("cp 'x"), (std::vector<std::string>{"!has a quote that is not closed"}));
  EXPECT_EQ(words("  ")[0].substr(0, 17), "!names no program");
  EXPECT_EQ(words("'' x")[0].substr(0, 17), "!names no program");

  std::string many;
  for (int i = 0; i < 65; ++i) many += "w ";
  EXPECT_EQ(words(many.c_str())[0].substr(0, 23), "!has more than 64 words");
  EXPECT_EQ(words(std::string(9000, 'x').c_str())[0].substr(0, 12), "!is too long");
}

}  // namespace
}  // namespace gpuprof
