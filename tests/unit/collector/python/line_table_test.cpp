// SPDX-License-Identifier: Apache-2.0
// Lines of instructions, against what the interpreters of this machine say of their own libraries'
// code (dis.findlinestarts), and against tables that are no tables.
#include "collector/python/line_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace gpuprof {
namespace {

// Prints, for each code object: its first line, its table in hex, and offset:line of each
// instruction, 0 where there is no line.
constexpr const char* kScript = R"(
import dis, sys, types
table = "co_linetable" if sys.version_info >= (3, 10) else "co_lnotab"
def show(code):
    starts, places, line = dict(dis.findlinestarts(code)), [], 0
    if sys.version_info >= (3, 11):
        lines = [p[0] for p in code.co_positions()]
        places = [(2 * i, l or 0) for i, l in enumerate(lines)]
    elif sys.version_info >= (3, 10):
        places = [(i, l or 0) for a, b, l in code.co_lines() for i in range(a, b, 2)]
    else:
        for i in range(0, len(code.co_code), 2):
            line = starts.get(i, line)
            places.append((i, line))
    print(code.co_firstlineno, getattr(code, table).hex() or "-", *("%d:%d" % p for p in places))
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            show(each)
import argparse, collections, inspect, typing
for module in (argparse, collections, inspect, typing):
    with open(module.__file__) as file:
        show(compile(file.read(), module.__file__, "exec"))
)";

std::vector<std::string> interpreters() {
  std::vector<std::string> found = {"/usr/bin/python3"};
  const char* const home = std::getenv("HOME");
  const std::string of_user = home ? home : "";
  const std::filesystem::path versions = of_user + "/.pyenv/versions";
  std::error_code error;
  for (const char* made : {"python3.14", "python3.15"}) {  // by tests/e2e/newer_python.sh
    const std::string newer = of_user + "/.cache/gpuprof/newer-python/usr/bin/" + made;
    if (std::filesystem::exists(newer, error)) found.push_back(newer);
  }
  for (const auto& each : std::filesystem::directory_iterator(versions, error)) {
    found.push_back(each.path() / "bin/python3");
  }
  return found;
}

std::string output_of(const std::string& command) {
  std::string out;
  FILE* const pipe = ::popen(command.c_str(), "r");
  if (!pipe) return out;
  char buffer[65536];
  for (size_t got; (got = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) out.append(buffer, got);
  ::pclose(pipe);
  return out;
}

std::vector<uint8_t> from_hex(const std::string& text) {
  std::vector<uint8_t> out;
  for (size_t i = 0; text != "-" && i + 1 < text.size(); i += 2) {
    out.push_back(static_cast<uint8_t>(std::stoi(text.substr(i, 2), nullptr, 16)));
  }
  return out;
}

TEST(LineTable, SaysWhatPythonSays) {
  const std::string script = ::testing::TempDir() + "gpuprof_lines.py";
  std::ofstream(script) << kScript;
  size_t checked = 0, versions = 0;
  for (const std::string& python : interpreters()) {
    const std::string version = output_of(python +
                                          " -c 'import sys; print(sys.version_info[1] if "
                                          "sys.version_info[0] == 3 else 0)' 2>/dev/null");
    const int minor = std::atoi(version.c_str());
    if (minor < 8) continue;
    ++versions;
    const LineTable kind = minor < 10    ? LineTable::lnotab
                           : minor == 10 ? LineTable::ranges
                                         : LineTable::locations;
    std::istringstream lines(output_of(python + " -B " + script));
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      int first = 0;
      std::string hex, place;
      words >> first >> hex;
      const std::vector<uint8_t> table = from_hex(hex);
      while (words >> place) {
        const size_t colon = place.find(':');
        const int offset = std::stoi(place.substr(0, colon));
        const int expected = std::stoi(place.substr(colon + 1));
        ASSERT_EQ(line_at(kind, table.data(), table.size(), first, offset), expected)
            << python << ", code at line " << first << ", offset " << offset;
        ++checked;
      }
    }
  }
  std::filesystem::remove(script);
  if (versions == 0) GTEST_SKIP() << "no CPython from 3.8 on here";
  EXPECT_GT(checked, 10000 * versions);
}

TEST(LineTable, BytesMayBeAnything) {
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::vector<uint8_t> table(random() % 40);
    for (uint8_t& byte : table) byte = static_cast<uint8_t>(random());
    for (const LineTable kind : {LineTable::lnotab, LineTable::ranges, LineTable::locations}) {
      (void)line_at(kind, table.data(), table.size(), 1, static_cast<int>(random() % 200));
    }
  }
  EXPECT_EQ(line_at(LineTable::locations, nullptr, 0, 7, 0), 0);
  EXPECT_EQ(line_at(LineTable::lnotab, nullptr, 0, 7, 0), 7);
}

}  // namespace
}  // namespace gpuprof
