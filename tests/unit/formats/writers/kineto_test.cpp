// SPDX-License-Identifier: Apache-2.0
// The directory of torch.profiler traces: its files, and what their readers need besides events
// (which chrome_test.cpp looks at).
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <libdeflate.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "formats/io/file_bytes.h"
#include "formats/io/utf8.h"
#include "formats/kineto_reader/reader.h"
#include "formats/trace/names.h"
#include "formats/views/gpu_annotations.h"
#include "formats/writers/exporter.h"
#include "tests/unit/support/trace_maker.h"

namespace gpuprof::test {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

// All members of a gzip file.
std::string unpacked(const std::string& packed) {
  libdeflate_decompressor* const decompressor = libdeflate_alloc_decompressor();
  std::string out, member(4 << 20, '\0');
  for (size_t at = 0; at < packed.size();) {
    size_t used = 0, got = 0;
    if (libdeflate_gzip_decompress_ex(decompressor, packed.data() + at, packed.size() - at,
                                      member.data(), member.size(), &used,
                                      &got) != LIBDEFLATE_SUCCESS) {
      ADD_FAILURE() << "not gzip at " << at;
      break;
    }
    out.append(member.data(), got);
    at += used;
  }
  libdeflate_free_decompressor(decompressor);
  return out;
}

class Kineto : public testing::Test {
 protected:
  Kineto() : folder_(fs::temp_directory_path() / ("gpuprof_kineto_" + std::to_string(::getpid()))) {
    fs::remove_all(folder_);
  }
  ~Kineto() override { fs::remove_all(folder_); }

  // Name of each file, and its text.
  std::map<std::string, std::string> exported(const Trace& trace) {
    std::string error;
    EXPECT_TRUE(find_exporter("kineto")->write(trace, folder_, {}, error)) << error;
    std::map<std::string, std::string> files;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
      std::string bytes;
      EXPECT_TRUE(read_file(entry.path(), bytes, error)) << error;
      files[entry.path().filename()] = unpacked(bytes);
    }
    return files;
  }

  const fs::path folder_;
};

TEST_F(Kineto, OneFileForEachRank) {
  const auto files = exported(busy_trace(3));
  ASSERT_EQ(files.size(), 3u);
  std::set<int64_t> ranks, bases;
  for (const auto& [name, text] : files) {
    // torch-tb-profiler's pattern, with <node>_<pid> for its distributed view.
    EXPECT_TRUE(
        std::regex_match(name, std::regex("[^.]+_[0-9]+\\.[0-9]+\\.pt\\.trace\\.json\\.gz")))
        << name;
    // HTA's pattern, line by line.
    std::smatch rank;
    ASSERT_TRUE(std::regex_search(text, rank, std::regex("\"rank\":\\s+([0-9]+)")));
    ranks.insert(std::stoi(rank[1]));
    const Json root = Json::parse(text);
    EXPECT_EQ(root["distributedInfo"]["rank"], std::stoi(rank[1]));
    bases.insert(root["baseTimeNanoseconds"].get<int64_t>());
    EXPECT_EQ(root["deviceProperties"].size(), 1u);
    for (const Json& e : root["traceEvents"]) {
      if (e.value("cat", "") != "kernel") continue;
      EXPECT_EQ(e["pid"], 0) << "the device's own number";
    }
  }
  EXPECT_EQ(ranks, (std::set<int64_t>{0, 1, 2}));
  EXPECT_EQ(bases.size(), 1u) << "all ranks on one time base";
}

TEST_F(Kineto, WindowsOfAProcessAreOneFile) {
  Trace trace = busy_trace(2);
  for (Process& p : trace.processes) {
    p.header.set_pid(4242);
    p.header.set_rank(0);
  }
  EXPECT_EQ(exported(trace).size(), 1u);
}

TEST_F(Kineto, ContainersWithOneHostsNameAndTheSamePidsAreWorkersOfTheirOwn) {
  Trace trace = busy_trace(3);
  for (Process& process : trace.processes) {
    process.header.set_host("node1");
    process.header.set_pid(30);
  }
  std::set<std::string> workers;
  for (const auto& [name, text] : exported(trace)) workers.insert(name.substr(0, name.find('.')));
  EXPECT_EQ(workers, (std::set<std::string>{"node1_30", "node1-2_30", "node1-3_30"}));
}

TEST_F(Kineto, AFileIsNamedForOneProcessOnly) {
  std::string error;
  const std::string file = folder_.string() + ".json";
  EXPECT_FALSE(find_exporter("kineto")->write(busy_trace(2), file, {}, error));
  EXPECT_NE(error.find("2 processes"), std::string::npos) << error;
  EXPECT_FALSE(fs::exists(file));
  EXPECT_TRUE(find_exporter("kineto")->write(busy_trace(1), file, {}, error)) << error;
  std::string text;
  EXPECT_TRUE(read_file(file, text, error));
  EXPECT_EQ(Json::parse(text)["distributedInfo"]["rank"], 0);
  fs::remove(file);
}

TEST_F(Kineto, WhatABudgetLeftOutIsReadBackForEachProcess) {
  Trace trace = busy_trace(3);
  trace.processes[1].budget = {2.5, {{ShedKind::waits, trace.processes[1].window_begin + 7001, 1}}};
  trace.processes[2].budget = {5,
                               {{ShedKind::samples, trace.processes[2].window_begin, 0},
                                {ShedKind::calls, trace.processes[2].window_begin + 9, 1}}};
  std::string error;
  const std::string file = folder_.string() + ".json";
  ASSERT_TRUE(find_exporter("chrome")->write(trace, file, {}, error)) << error;
  Trace again;
  read_kineto(file, again);
  fs::remove(file);
  ASSERT_EQ(again.processes.size(), 3u);
  std::multiset<std::string> wanted, found;
  const auto add = [](const Trace& from, std::multiset<std::string>& to) {
    for (const Process& process : from.processes) {
      for (const RecordingBudget::LeftOut& each : process.budget.left_out) {
        to.insert(fmt::format("{} {} {}", process.budget.allowed_pct, static_cast<int>(each.kind),
                              each.since));
      }
    }
  };
  add(trace, wanted);
  add(again, found);
  EXPECT_EQ(found, wanted);
  EXPECT_EQ(again.processes[0].metadata.find("left out"), std::string::npos);
}

TEST_F(Kineto, AHostsNameCannotLeaveTheDirectory) {
  Trace trace = busy_trace(1);
  trace.processes[0].header.set_host("../../etc/\x01 host.example");
  const auto files = exported(trace);
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files.begin()->first.find("__-_-"), std::string::npos);
  EXPECT_TRUE(files.begin()->first.ends_with(".pt.trace.json.gz"));
}

// An event and the one it is joined with; of work without times nothing is drawn.
std::multiset<std::string> facts_of(const Trace& trace) {
  std::multiset<std::string> out;
  for (const Process& process : trace.processes) {
    const auto text = [&](const Event& event) {
      const Shape& shape = trace.shape(event);
      const EventExtra& extra = process.extra(event);
      const Lane& lane = process.lane(event);
      // A JSON file says of a kernel which collective it does, too; a dump says it by the call.
      const bool kernel = shape.kind == Kind::gpu_kernel;
      return fmt::format("{} {} {}-{} of {} on {}/{}/{}/{} {} {:#x} {:#x} {} {} {}x{}x{} {}",
                         kind_name(shape.kind), valid_utf8(trace.text(shape.label)), event.begin,
                         event.end, kernel ? "" : trace.text(shape.detail), lane.thread_id,
                         lane.device, lane.context, lane.stream, extra.bytes, extra.address,
                         extra.address2, shape.rank_count, shape.flags, shape.grid.x, shape.block.x,
                         shape.cluster_x, shape.dynamic_shared_bytes);
    };
    for (const Event& event : process.events) {
      const Shape& shape = trace.shape(event);
      if (shape.flags & kFlagNoTime) continue;
      const bool work = is_stream_work(shape.kind) && event.partner != EventIndex::none;
      const bool host = !is_gpu_kind(shape.kind);
      // The launch's shape is the kernel's.
      std::string fact = host && shape.kind == Kind::launch
                             ? fmt::format("launch {} {}", trace.text(shape.label), event.begin)
                             : text(event);
      if (work) {
        const Event& call = process.event(event.partner);
        fact += fmt::format(" by {} {}", trace.text(trace.shape(call).label), call.begin);
      }
      out.insert(std::move(fact));
    }
    out.insert("process " + process_title(process));
    for (const CollectiveKernel& pair : process.collective_kernels) {
      out.insert(fmt::format("{} does {}", process.event(pair.kernel).begin,
                             process.event(pair.collective).begin));
    }
    for (const Step& step : process.window_steps()) {
      out.insert(fmt::format("step {} {}-{}", step.step, step.begin, step.end));
    }
  }
  return out;
}

TEST_F(Kineto, ReadsBackAsItWas) {
  const Trace trace = busy_trace(1);
  exported(trace);
  Trace again;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
    read_kineto(entry.path(), again);
  }
  const auto was = facts_of(trace), is = facts_of(again);
  for (const std::string& fact : was) EXPECT_EQ(is.count(fact), was.count(fact)) << fact;
  for (const std::string& fact : is) EXPECT_EQ(was.count(fact), is.count(fact)) << fact;
  EXPECT_GT(was.size(), 25u);
}

TEST(GpuAnnotations, ThoseThatCutWorkGoElsewhere) {
  const auto slice = [](int64_t begin, int64_t end) { return Slice{EventIndex::none, begin, end}; };
  const std::vector<Slice> work = {slice(10, 20), slice(20, 30), slice(40, 50)};
  const std::vector<Slice> annotations = {slice(10, 30), slice(15, 45), slice(20, 30),
                                          slice(25, 26), slice(28, 60), slice(31, 60)};
  const std::vector<bool> cut = crossing_work(annotations, [&](const auto& visit) {
    for (const Slice& piece : work) visit(piece);
  });
  EXPECT_EQ(cut, (std::vector<bool>{false, true, false, true, true, false}));
  std::vector<Slice> crossing;
  const auto fitting = annotations_around(annotations, cut, crossing);
  ASSERT_EQ(fitting.size(), 3u);
  EXPECT_EQ(fitting[0].end, 30);
  EXPECT_EQ(fitting[1].begin, 20);
  EXPECT_EQ(fitting[2].begin, 31);
  EXPECT_EQ(crossing.size(), 3u);
}

TEST(GpuAnnotations, DataLoaders) {
  EXPECT_TRUE(
      names_torch_data_loader("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"));
  EXPECT_TRUE(names_torch_data_loader("enumerate(DataPipe)#Mapper"));
  EXPECT_FALSE(names_torch_data_loader("enumerate(DataLoader)#init"));
}

}  // namespace
}  // namespace gpuprof::test
