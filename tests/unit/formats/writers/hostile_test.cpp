// SPDX-License-Identifier: Apache-2.0
// Every exporter writes a valid file of a valid trace, however awkward. (perfetto_test.cpp and
// xplane_test.cpp look at theirs, which take a schema to read.)
#include <gtest/gtest.h>
#include <libdeflate.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "formats/io/file_bytes.h"
#include "formats/io/utf8.h"
#include "formats/trace/names.h"
#include "formats/writers/exporter.h"
#include "tests/unit/support/hostile_trace.h"

namespace gpuprof::test {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

class Hostile : public testing::Test {
 protected:
  static void SetUpTestSuite() { trace_ = new Trace(hostile_trace()); }
  static void TearDownTestSuite() { delete trace_; }
  Hostile() : path_(fs::temp_directory_path() / ("gpuprof_hostile_" + std::to_string(::getpid()))) {
    fs::remove_all(path_);
  }
  ~Hostile() override { fs::remove_all(path_); }

  // What one exporter wrote into one file.
  std::string exported(const char* format, const std::string& end = "") {
    std::string error, bytes;
    const std::string file = path_.string() + end;
    EXPECT_TRUE(find_exporter(format)->write(*trace_, file, {}, error)) << error;
    EXPECT_TRUE(read_file(file, bytes, error)) << error;
    fs::remove_all(file);
    return bytes;
  }

  static inline Trace* trace_ = nullptr;
  const fs::path path_;
};

TEST_F(Hostile, TheTraceIsAsMade) {
  ASSERT_EQ(trace_->processes.size(), 1u);
  EXPECT_TRUE(trace_->problems.empty());
  size_t threads = 0;
  std::set<uint32_t> gpus;
  for (const Lane& lane : trace_->processes[0].lanes) {
    threads += lane.type == LaneType::thread;
    if (lane.type == LaneType::stream) gpus.insert(lane.device);
  }
  EXPECT_EQ(threads, kHostileThreads);
  EXPECT_EQ(gpus.size(), kHostileGpus);
}

TEST_F(Hostile, JsonIsStrictAndEverySliceIsWhole) {
  for (const auto& [format, end] : {std::pair("chrome", ".json"), std::pair("kineto", ".k.json")}) {
    const std::string text = exported(format, end);
    EXPECT_TRUE(is_valid_utf8(text));
    const Json root = Json::parse(text);
    size_t kernels = 0, flows = 0;
    std::map<std::pair<int64_t, int64_t>, std::set<int64_t>> contexts;  // of each row
    for (const Json& e : root["traceEvents"]) {
      const std::string phase = e["ph"];
      flows += phase == "f";
      if (phase != "X") continue;
      EXPECT_GE(e["dur"].get<double>(), 0);
      EXPECT_GE(e["ts"].get<double>(), 0);
      if (e["cat"] == "Trace") continue;
      EXPECT_GE(e["tid"].get<uint64_t>(), 1u);
      kernels += e["cat"] == "kernel";
      if (e["cat"] == "kernel") {
        EXPECT_LT(e["pid"], 64);
        contexts[{e["pid"], e["tid"]}].insert(e["args"]["context"].get<int64_t>());
      }
    }
    for (const auto& [row, found] : contexts) EXPECT_EQ(found.size(), 1u) << row.second;
    EXPECT_EQ(kernels, kHostileThreads);
    EXPECT_EQ(flows, kHostileThreads);
    EXPECT_EQ(root["deviceProperties"].size(), kHostileGpus);
  }
}

TEST_F(Hostile, SpeedscopeIsStrictJson) {
  const std::string text = exported("speedscope");
  EXPECT_TRUE(is_valid_utf8(text));
  const Json root = Json::parse(text);
  int64_t sum = 0;
  for (const Json& weight : root["profiles"][0]["weights"]) sum += weight.get<int64_t>();
  EXPECT_EQ(root["profiles"][0]["endValue"], sum);
}

TEST_F(Hostile, PickleIsOneValue) {
  const std::string bytes = exported("memory-viz");
  EXPECT_TRUE(bytes.starts_with("\x80\x02}("));
  EXPECT_TRUE(bytes.ends_with("u."));
}

TEST_F(Hostile, EveryFormatWritesItAndATraceOfNothing) {
  const Trace nothing;
  for (const Exporter& exporter : exporters()) {
    for (const Trace* const trace : {static_cast<const Trace*>(trace_), &nothing}) {
      std::string error;
      EXPECT_TRUE(exporter.write(*trace, path_, {}, error)) << exporter.name << ": " << error;
      EXPECT_TRUE(fs::exists(path_)) << exporter.name;
      fs::remove_all(path_);
    }
  }
}

TEST_F(Hostile, DirectoriesHaveNamesThatStayInside) {
  for (const char* format : {"kineto", "xplane", "tensorboard", "perfetto-ranks"}) {
    std::string error;
    ASSERT_TRUE(find_exporter(format)->write(*trace_, path_, {}, error)) << error;
    size_t files = 0;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path_)) {
      const std::string name = entry.path().filename();
      EXPECT_LE(name.size(), 255u);
      EXPECT_EQ(name.find_first_of("\"\x01\xff"), std::string::npos);
      files += entry.is_regular_file();
    }
    EXPECT_EQ(files, format == std::string("tensorboard") ? 2u : 1u);
    fs::remove_all(path_);
  }
}

}  // namespace
}  // namespace gpuprof::test
