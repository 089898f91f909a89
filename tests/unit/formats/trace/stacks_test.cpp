// SPDX-License-Identifier: Apache-2.0
// Native stacks from records to the trace, and as the stackFrames of trace event JSON.
#include "formats/trace/stacks.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "formats/io/file_bytes.h"
#include "formats/writers/exporter.h"
#include "tests/unit/support/trace_maker.h"

namespace gpuprof::test {
namespace {

using Lines = std::vector<std::string>;

StackIndex stack_of(const Process& process, size_t event) {
  return process.extra(process.events.at(event)).stack;
}

TEST(Stacks, records_to_trace) {
  const Trace trace = load(stacks_dump());
  EXPECT_TRUE(trace.problems.empty());
  const Process& process = trace.processes.at(0);
  ASSERT_EQ(process.events.size(), 5u);
  const StackTable& stacks = process.stacks;
  const auto frames = [&](size_t event) {
    const auto span = stacks[stack_of(process, event)];
    return std::vector<uint64_t>(span.begin(), span.end());
  };
  EXPECT_EQ(frames(0), (std::vector<uint64_t>{0x1010, 0x2020, 0x1030, 0x9000}));
  EXPECT_EQ(frames(1), (std::vector<uint64_t>{0x1018, 0x1030}));
  EXPECT_EQ(stack_of(process, 2), stack_of(process, 0));
  EXPECT_EQ(stack_of(process, 3), StackIndex::none);
  EXPECT_EQ(stack_of(process, 4), StackIndex::none);
  EXPECT_EQ(stacks.addresses(), (std::vector<uint64_t>{0x1010, 0x1018, 0x1030, 0x2020, 0x9000}));
  ASSERT_EQ(stacks.modules().size(), 2u);
  EXPECT_EQ(stacks.modules()[0].build_id, "\x12\xab");
}

TEST(Stacks, lines_for_people) {
  Trace trace = load(stacks_dump());
  Process& process = trace.processes.at(0);
  StackTable& stacks = process.stacks;
  EXPECT_EQ(stacks.lines(stack_of(process, 0)),
            (Lines{"train+0x50", "libx.so+0x60", "train+0x70", "0x9000"}));
  stacks.set_frames(0x1010, {{"inner()", "a.cpp", 7, true}, {"outer()", "a.cpp", 9, false}});
  stacks.set_frames(0x1030, {{"main", "", 0, false}});
  EXPECT_EQ(stacks.lines(stack_of(process, 0)),
            (Lines{"inner() (a.cpp:7)", "outer() (a.cpp:9)", "libx.so+0x60", "main", "0x9000"}));
  EXPECT_TRUE(stacks.lines(StackIndex::none).empty());
}

TEST(Stacks, address_of_a_module_that_took_anothers_place_has_no_name) {
  StackTable stacks;
  stacks.add_module({0x1000, 0x1100, 0x1000, "/lib/first.so", "1", 1, 1});
  stacks.add_module({0x1000, 0x1100, 0x1000, "/lib/first.so", "1", 1, 1});  // the same once more
  EXPECT_EQ(stacks.place(0x1010), "first.so+0x10");
  stacks.add_module({0x1080, 0x1180, 0x1080, "/lib/second.so", "2", 1, 1});
  EXPECT_EQ(stacks.place(0x1010), "first.so+0x10");
  EXPECT_EQ(stacks.place(0x1090), "0x1090");
  EXPECT_EQ(stacks.place(0x1110), "second.so+0x90");
  // A call at a function's end returns to where the next one begins, or the next file.
  EXPECT_EQ(stacks.place(0x1180), "second.so+0x100");
  EXPECT_EQ(stacks.place(0x1181), "0x1181");
}

// Changes the Events message of stacks_dump() and reads it.
Trace load_changed(const std::function<void(dump::Events&)>& change) {
  dump::Events events = stacks_events();
  change(events);
  ByteBuffer bytes;
  append(bytes, ChunkKind::header, make_header(1));
  append(bytes, ChunkKind::events, events);
  append(bytes, ChunkKind::summary, make_summary(ticks_at(1000)));
  return load(view(bytes));
}

void expect_problem(const Trace& trace, const char* what) {
  ASSERT_EQ(trace.problems.size(), 1u);
  EXPECT_NE(trace.problems[0].text().find(what), std::string::npos) << trace.problems[0].text();
}

TEST(Stacks, damage_is_told) {
  EXPECT_TRUE(load_changed([](dump::Events&) {}).problems.empty());
  expect_problem(load_changed([](dump::Events& e) { e.mutable_stack_frame()->RemoveLast(); }),
                 "stacks are cut");
  expect_problem(load_changed([](dump::Events& e) { e.set_stack_depth(0, 0xffffffffu); }),
                 "stacks are cut");
  expect_problem(load_changed([](dump::Events& e) { e.mutable_lane(0)->set_stack(0, 3); }),
                 "names a stack that is not there");
  expect_problem(load_changed([](dump::Events& e) { e.mutable_lane(0)->add_stack(1); }),
                 "columns of different lengths");
}

TEST(Stacks, frames_of_trace_event_json) {
  Trace trace = load(stacks_dump());
  trace.processes.at(0).stacks.set_frames(0x1030, {{"ma\"in", "", 0, false}});
  const std::string path = std::filesystem::temp_directory_path() /
                           ("gpuprof_stacks_test_" + std::to_string(::getpid()) + ".json");
  std::string error, bytes;
  ASSERT_TRUE(find_exporter("chrome")->write(trace, path, {}, error)) << error;
  ASSERT_TRUE(read_file(path, bytes, error)) << error;
  std::filesystem::remove(path);
  const auto document = nlohmann::json::parse(bytes);
  std::vector<Lines> found;
  for (const auto& event : document.at("traceEvents")) {
    if (event.at("name") != "cudaLaunchKernel") continue;
    Lines lines;
    for (std::string at = event.value("sf", ""); !at.empty();) {
      const auto& frame = document.at("stackFrames").at(at);
      lines.push_back(frame.at("name"));
      at = frame.value("parent", "");
    }
    found.push_back(lines);
  }
  const Lines first = {"train+0x50", "libx.so+0x60", "ma\"in", "0x9000"};
  EXPECT_EQ(found, (std::vector<Lines>{first, {"train+0x58", "ma\"in"}, first, {}, {}}));
  EXPECT_EQ(document.at("stackFrames").size(), 6u) << "what stacks share stands there once";
}

}  // namespace
}  // namespace gpuprof::test
