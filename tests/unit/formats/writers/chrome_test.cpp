// SPDX-License-Identifier: Apache-2.0
// The JSON file, parsed strictly and held to what Kineto's readers and the trace viewers reject.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "formats/io/file_bytes.h"
#include "formats/io/utf8.h"
#include "formats/kineto_reader/reader.h"
#include "formats/trace/names.h"
#include "formats/views/slices.h"
#include "formats/writers/exporter.h"
#include "tests/unit/support/rank_job.h"
#include "tests/unit/support/trace_maker.h"

namespace gpuprof::test {
namespace {

using Json = nlohmann::json;

struct Exported {
  explicit Exported(const Trace& trace) {
    std::string error;
    EXPECT_TRUE(find_exporter("chrome")->write(trace, path, {}, error)) << error;
    EXPECT_TRUE(read_file(path, text, error)) << error;
    root = Json::parse(text);  // strict: throws for NaN, control characters, bad UTF-8, commas
  }
  ~Exported() { std::filesystem::remove(path); }
  Exported(const Exported&) = delete;
  Exported& operator=(const Exported&) = delete;
  std::vector<Json> phase(std::string_view ph) const {
    std::vector<Json> out;
    for (const Json& event : root["traceEvents"]) {
      if (event["ph"] == ph) out.push_back(event);
    }
    return out;
  }
  // X events of a category; empty: all but the profiler's span.
  std::vector<Json> slices(std::string_view category = {}) const {
    std::vector<Json> out;
    for (Json& event : phase("X")) {
      const std::string cat = event["cat"];
      if (category.empty() ? cat != "Trace" : cat == category) out.push_back(std::move(event));
    }
    return out;
  }
  Json named(std::string_view name) const {
    for (const Json& event : root["traceEvents"]) {
      if (event["name"] == name) return event;
    }
    ADD_FAILURE() << "no event named " << name;
    return Json();
  }

  const std::string path = std::filesystem::temp_directory_path() /
                           ("gpuprof_chrome_test_" + std::to_string(::getpid()) + ".json");
  std::string text;
  Json root;
};

int64_t ns_of(const Json& microseconds) { return std::llround(microseconds.get<double>() * 1000); }

TEST(Chrome, SkeletonAndBaseTime) {
  const Exported out(busy_trace(1));
  EXPECT_EQ(out.root["schemaVersion"], 1);
  EXPECT_EQ(out.root["displayTimeUnit"], "ms");
  const int64_t base = out.root["baseTimeNanoseconds"];
  EXPECT_EQ(base % (int64_t{7889238} * 1'000'000'000 / 2), 0);
  const Json gemm = out.named("gemm(float*)");
  EXPECT_EQ(base + ns_of(gemm["ts"]), kEpochNs + 4'000'000 + 30'000);
  EXPECT_EQ(ns_of(gemm["dur"]), 100'000);
  EXPECT_EQ(out.root["deviceProperties"][0]["name"], "Test GPU");
  EXPECT_EQ(out.root["deviceProperties"][0]["numSms"], 132);
  EXPECT_NE(out.text.find("\n\"rank\": 0,\n"), std::string::npos)
      << "readers look for it line by line";
  EXPECT_LT(out.text.find("\"rank\": 0"), out.text.find("\"traceEvents\""));
  EXPECT_TRUE(is_valid_utf8(out.text));
  EXPECT_TRUE(out.text.starts_with("{\n\""));
}

// A rank that works on its node's third GPU sees the first two.
TEST(Chrome, GpusInFrontOfTheOneThatWorkedHaveTheirNames) {
  Trace trace = busy_trace(1);
  Process& process = trace.processes[0];
  for (Lane& lane : process.lanes) {
    if (lane.type == LaneType::stream || lane.type == LaneType::device) lane.device = 2;
  }
  process.header.clear_device();
  for (const char* const name : {"GPU a", "GPU b", "GPU c"}) {
    dump::Device& device = *process.header.add_device();
    device.set_id(static_cast<uint32_t>(process.header.device_size()) - 1);
    device.set_name(name);
  }
  const Json devices = Exported(trace).root["deviceProperties"];
  ASSERT_EQ(devices.size(), 3u);
  EXPECT_EQ(devices[0]["name"], "GPU a");
  EXPECT_EQ(devices[1]["name"], "GPU b");
  EXPECT_EQ(devices[2]["name"], "GPU c");
}

TEST(Chrome, ACommandThatIsCutEndsInDots) {
  Trace trace = busy_trace(1);
  Process& process = trace.processes[0];
  process.header.set_host("");
  process.header.set_rank(-1);
  process.header.clear_command();
  const std::string long_word(101, 'x');
  process.header.add_command(long_word);
  EXPECT_EQ(process_title(process), long_word);
  process.header.add_command("--lr");
  process.header.add_command("0.1");
  EXPECT_EQ(process_title(process), long_word + " ...");
}

TEST(Chrome, TimesHaveThreeDecimals) {
  const Exported out(busy_trace(1));
  size_t found = 0;
  for (size_t at = out.text.find("\"ts\":"); at != std::string::npos;
       at = out.text.find("\"ts\":", at + 1)) {
    const size_t end = out.text.find_first_of(",}", at);
    ASSERT_EQ(out.text[end - 4], '.') << out.text.substr(at, end - at);
    ++found;
  }
  EXPECT_GT(found, 30u);
}

void shift_events(const Trace& trace, Process& process, int64_t shift) {
  EventTable shifted(process.events.size(), trace.shapes.size());
  std::vector<EventTable::Writer> writers;
  writers.emplace_back(shifted, 0);
  for (Event event : process.events) {
    event.begin += shift, event.end += shift;
    writers[0].add(event);
    shifted.set_partner(number(event.index), event.partner);
    if (event.next_sibling != EventIndex::none) {
      shifted.set_next_sibling(number(event.index), event.next_sibling);
    }
  }
  shifted.finish(writers);
  process.events = std::move(shifted);
}

// Perfetto and HTA hold microseconds in doubles: each nanosecond has to come back, on any day.
TEST(Chrome, TimesSurviveDoublesOnAnyDay) {
  constexpr int64_t kDay = int64_t{86'400} * 1'000'000'000;
  for (int64_t day = 0; day < 100; ++day) {
    Trace trace = busy_trace(1);
    Process& process = trace.processes.front();
    const int64_t shift = day * kDay + day * 137;  // the trace's own times are whole microseconds
    process.window_begin += shift, process.window_end += shift;
    shift_events(trace, process, shift);
    const Exported out(trace);
    const int64_t base = out.root["baseTimeNanoseconds"];
    std::set<int64_t> times;
    for (const Json& slice : out.slices()) times.insert(base + ns_of(slice["ts"]));
    for (const Event& event : process.events) {
      const Shape& shape = trace.shape(event);
      if (shape.kind != Kind::launch && shape.kind != Kind::copy) continue;
      EXPECT_TRUE(times.contains(event.begin)) << event.begin << " on day " << day;
    }
  }
}

TEST(Chrome, EverySliceHasWhatReadersNeed) {
  for (const int ranks : {1, 3}) {
    const Exported out(busy_trace(ranks));
    for (const Json& e : out.slices()) {
      EXPECT_TRUE(e["cat"].is_string() && e["name"].is_string());
      EXPECT_TRUE(e["pid"].is_number_unsigned()) << e;
      EXPECT_TRUE(e["tid"].is_number_unsigned() && e["tid"] >= 1) << e;
      EXPECT_LE(e["pid"].get<uint64_t>(), 0xffffffffu);
      EXPECT_LE(e["tid"].get<uint64_t>(), 0xffffffffu);
      EXPECT_GE(e["ts"].get<double>(), 0);
      EXPECT_GE(e["dur"].get<double>(), 0);
      for (const auto& [key, value] : e["args"].items()) {
        EXPECT_FALSE(value.is_null()) << key;
      }
    }
    for (const char* ph : {"B", "E", "b", "e", "n"}) EXPECT_TRUE(out.phase(ph).empty());
  }
}

TEST(Chrome, SlicesOfARowNestAndKernelsOfARowFollowEachOther) {
  const Exported out(busy_trace(2));
  std::map<std::pair<int64_t, int64_t>, std::vector<Json>> rows;
  for (Json& e : out.slices()) rows[{e["pid"], e["tid"]}].push_back(e);
  for (auto& [row, events] : rows) {
    std::stable_sort(events.begin(), events.end(), [](const Json& a, const Json& b) {
      return std::pair(ns_of(a["ts"]), -ns_of(a["dur"])) <
             std::pair(ns_of(b["ts"]), -ns_of(b["dur"]));
    });
    std::vector<std::pair<int64_t, std::string>> open;  // end, category
    for (const Json& e : events) {
      const int64_t begin = ns_of(e["ts"]), end = begin + ns_of(e["dur"]);
      while (!open.empty() && open.back().first <= begin) open.pop_back();
      EXPECT_TRUE(open.empty() || end <= open.back().first) << e;
      const std::string cat = e["cat"];
      const bool work = cat == "kernel" || cat == "gpu_memcpy";
      EXPECT_TRUE(open.empty() || !work || open.back().second == "gpu_user_annotation") << e;
      open.emplace_back(end, cat);
    }
  }
}

TEST(Chrome, OneLaunchPerCorrelationAndEveryGpuRowHasIts) {
  const Exported out(busy_trace(1));
  std::map<int64_t, int> calls;
  for (const char* cat : {"cuda_runtime", "cuda_driver"}) {
    for (const Json& e : out.slices(cat)) {
      EXPECT_FALSE(e["args"].contains("stream")) << "readers would take it for GPU work";
      if (e["args"].contains("correlation")) ++calls[e["args"]["correlation"]];
    }
  }
  for (const auto& [correlation, count] : calls) EXPECT_EQ(count, 1) << correlation;
  for (const char* cat : {"kernel", "gpu_memcpy", "gpu_memset", "cuda_sync"}) {
    const auto rows = out.slices(cat);
    EXPECT_FALSE(rows.empty()) << cat;
    for (const Json& e : rows) {
      EXPECT_EQ(calls.count(e["args"]["correlation"]), 1u) << e;
      EXPECT_EQ(e["args"]["device"], e["pid"]);
    }
  }
}

TEST(Chrome, FlowsFollowTheirSlices) {
  const Exported out(busy_trace(2));
  std::map<int64_t, int> begun, ended;
  const Json* last = nullptr;
  for (const Json& e : out.root["traceEvents"]) {
    if (e["ph"] == "s" || e["ph"] == "f") {
      ASSERT_NE(last, nullptr);
      EXPECT_EQ((*last)["ph"], "X");
      EXPECT_EQ((*last)["ts"], e["ts"]);
      EXPECT_EQ((*last)["tid"], e["tid"]);
      EXPECT_EQ((*last)["pid"], e["pid"]);
      EXPECT_EQ(e["cat"], "ac2g");
      EXPECT_EQ(e["name"], "ac2g");
      ++(e["ph"] == "s" ? begun : ended)[e["id"]];
      EXPECT_EQ(e.contains("bp"), e["ph"] == "f");
    }
    last = &e;
  }
  EXPECT_EQ(begun.size(), 12u) << "six calls with GPU work on each rank";
  for (const auto& [id, count] : begun) {
    EXPECT_EQ(count, 1);
    EXPECT_GE(ended[id], 1);
  }
  EXPECT_EQ(begun.size(), ended.size());
  EXPECT_EQ(ended[3], 2) << "the graph's two nodes";
}

TEST(Chrome, StepsAreAnnotationsOfTheMainThread) {
  const Exported out(busy_trace(1));
  int64_t last_end = 0;
  for (const int step : {12, 13}) {
    const Json e = out.named("ProfilerStep#" + std::to_string(step));
    EXPECT_EQ(e["cat"], "user_annotation");
    EXPECT_EQ(e["pid"], 4242);
    EXPECT_EQ(e["tid"], 4242);
    EXPECT_GE(ns_of(e["ts"]), last_end);
    last_end = ns_of(e["ts"]) + ns_of(e["dur"]);
    EXPECT_EQ(ns_of(e["dur"]), step == 12 ? 499'998 : 500'000) << "steps that touch are kept apart";
  }
}

TEST(Chrome, KernelsHaveKinetosArguments) {
  const Exported out(busy_trace(1));
  const Json gemm = out.named("gemm(float*)");
  EXPECT_EQ(gemm["cat"], "kernel");
  EXPECT_EQ(gemm["tid"], 7);
  const Json& args = gemm["args"];
  EXPECT_EQ(args["queued"], 0);
  EXPECT_EQ(args["stream"], 7);
  EXPECT_EQ(args["context"], 1);
  EXPECT_EQ(args["correlation"], 1);
  EXPECT_EQ(args["registers per thread"], 40);
  EXPECT_EQ(args["shared memory"], 1024);
  EXPECT_EQ(args["grid"], Json({64, 1, 1}));
  EXPECT_EQ(args["block"], Json({128, 1, 1}));
  EXPECT_NEAR(args["blocks per SM"].get<double>(), 64.0 / 132, 1e-6);
  EXPECT_NEAR(args["warps per SM"].get<double>(), 64.0 / 132 * 4, 1e-6);
  EXPECT_GT(args["est. achieved occupancy %"], 0);
  const Json copy = out.named("Memcpy HtoD (Pinned -> Device)");
  EXPECT_EQ(copy["cat"], "gpu_memcpy");
  EXPECT_EQ(copy["args"]["bytes"], 1 << 20);
  EXPECT_NEAR(copy["args"]["memory bandwidth (GB/s)"].get<double>(), 52.4288, 1e-3);
  EXPECT_EQ(out.named("Memset (Device)")["cat"], "gpu_memset");
}

TEST(Chrome, ARangeThatWasCutSaysSo) {
  const Exported out(busy_trace(1));
  EXPECT_EQ(out.named("validate")["args"].value("open at window end", 0), 1);
  EXPECT_FALSE(out.named("forward")["args"].contains("open at window end"));
}

TEST(Chrome, OverlappingWorkGoesToAStreamOfItsOwn) {
  const Exported out(busy_trace(1));
  const Json gemm = out.named("gemm(float*)"), relu = out.named("relu(float*)");
  EXPECT_EQ(gemm["args"]["stream"], 7);
  EXPECT_FALSE(gemm["args"].contains("original_stream"));
  EXPECT_EQ(relu["args"]["stream"], 10000007);
  EXPECT_EQ(relu["args"]["original_stream"], 7);
  EXPECT_EQ(relu["tid"], 10000007);
}

TEST(Chrome, RangesAreDrawnAroundTheirGpuWork) {
  const Exported out(busy_trace(1));
  std::map<std::string, std::pair<int64_t, int64_t>> found;  // name -> begin, end in us
  for (const Json& e : out.slices("gpu_user_annotation")) {
    EXPECT_EQ(e["pid"], 0);
    EXPECT_FALSE(e["args"].contains("stream")) << "readers would take it for GPU work";
    if (e["tid"] != 7) continue;
    const int64_t begin =
        out.root["baseTimeNanoseconds"].get<int64_t>() + ns_of(e["ts"]) - (kEpochNs + 4'000'000);
    found[e["name"]] = {begin / 1000, (begin + ns_of(e["dur"])) / 1000};
  }
  EXPECT_EQ(found["forward"], std::pair(int64_t{30}, int64_t{252}));
  EXPECT_EQ(found["layer \"0\"\n\x01 \xef\xbf\xbd"], std::pair(int64_t{30}, int64_t{252}));
  EXPECT_FALSE(found.contains("ncclAllReduce"));
}

TEST(Chrome, SynchronizationNamesItsEvent) {
  const Exported out(busy_trace(1));
  const Json wait = out.named("Stream Wait Event");
  EXPECT_EQ(wait["cat"], "cuda_sync");
  EXPECT_EQ(wait["args"]["cuda_sync_kind"], "Stream Wait Event");
  EXPECT_EQ(wait["args"]["wait_on_cuda_event_record_corr_id"], 7);
  EXPECT_EQ(wait["args"]["wait_on_stream"], 7);
  EXPECT_EQ(wait["args"]["stream"], 7);
  const Json context = out.named("Context Sync");
  EXPECT_EQ(context["args"]["stream"], -1);
  EXPECT_EQ(context["args"]["correlation"], 9);
  for (const Json& e : out.slices("cuda_sync")) {
    EXPECT_TRUE(
        (std::set<std::string>{"Event Sync", "Stream Wait Event", "Stream Sync", "Context Sync"})
            .contains(e["name"]));
  }
}

TEST(Chrome, CollectivesShareAnExternalIdWithTheirKernel) {
  const Exported out(busy_trace(2));
  std::set<int64_t> ids;
  for (const Json& e : out.slices("user_annotation")) {
    if (e["name"] != "nccl:all_reduce") continue;
    EXPECT_EQ(e["args"]["Collective name"], "allreduce");
    EXPECT_EQ(e["args"]["Input Dims"], Json({{1024}}));
    EXPECT_EQ(e["args"]["Input type"], Json({"float"}));
    EXPECT_EQ(e["args"]["Group size"], 2);
    EXPECT_TRUE(e["args"]["Comms Id"].is_string()) << "64 bits do not fit a JSON number everywhere";
    EXPECT_TRUE(ids.insert(e["args"]["External id"].get<int64_t>()).second);
  }
  EXPECT_EQ(ids.size(), 2u);
  for (const Json& e : out.slices("kernel")) {
    const bool nccl = e["name"] == "ncclDevKernel_AllReduce";
    EXPECT_EQ(e["args"].contains("External id"), nccl);
    if (!nccl) continue;
    EXPECT_EQ(ids.erase(e["args"]["External id"].get<int64_t>()), 1u);
    EXPECT_EQ(e["args"]["dtype"], "Float");
  }
  EXPECT_TRUE(ids.empty());
}

// Of a rank's dump with one call.
Trace trace_of_call(const RankCall& call) {
  RankJob job;
  job.ranks = 4;
  std::string dump;
  RankWriter writer(job, 1, {}, [&](std::string_view bytes) { dump += bytes; });
  writer.begin_step(0);
  writer.leave(writer.arrive() + 60'000, call);
  writer.end_step();
  writer.finish();
  return load(dump);
}

TEST(Chrome, ElementsOfCollectivesAreThoseOfWholeTensors) {
  struct Row {
    const char* function;
    int64_t in, out;
  };
  for (const Row& row : {Row{"ncclAlltoAll", 400, 400},
                         {"ncclAlltoAllConfig", 400, 400},
                         {"ncclAllGather", 100, 400},
                         {"ncclAllGatherConfig", 100, 400},
                         {"ncclGather", 100, 400},
                         {"ncclReduceScatter", 400, 100},
                         {"ncclScatter", 400, 100},
                         {"ncclAllReduce", 100, 100}}) {
    RankCall call{row.function, RankCommunicator::job, 4, 1};
    call.count = 100;
    const Exported out(trace_of_call(call));
    const std::vector<Json> kernels = out.slices("kernel");
    ASSERT_EQ(kernels.size(), 1u);
    EXPECT_EQ(kernels[0]["args"]["In msg nelems"], row.in) << row.function;
    EXPECT_EQ(kernels[0]["args"]["Out msg nelems"], row.out) << row.function;
    Trace again;
    read_kineto(out.path, again);
    for (const Event& event : again.processes.at(0).events) {
      if (again.shape(event).kind != Kind::collective) continue;
      EXPECT_EQ(again.processes[0].extra(event).bytes, 100u) << row.function;
    }
  }
}

TEST(Chrome, PeersAreRanksOfTheJobWhereThatIsKnown) {
  const auto args_of = [](RankCommunicator communicator, int ranks) {
    const Exported out(trace_of_call({"ncclSend", communicator, ranks, 0, 1}));
    Trace again;
    read_kineto(out.path, again);
    for (const Event& event : again.processes.at(0).events) {
      if (again.shape(event).kind == Kind::collective) {
        EXPECT_EQ(again.shape(event).peer, 1u);
      }
    }
    return out.slices("kernel").at(0)["args"];
  };
  const Json world = args_of(RankCommunicator::job, 4), part = args_of(RankCommunicator::split, 2);
  EXPECT_EQ(world["Peer"], 1);
  EXPECT_EQ(world["Dst Rank"], 1);
  EXPECT_EQ(part["Peer"], 1);
  EXPECT_FALSE(part.contains("Dst Rank")) << "nothing tells which rank that is";
}

TEST(Chrome, MemoryMarksAndMetadata) {
  const Exported out(busy_trace(1));
  std::vector<Json> memory;
  std::map<std::pair<int64_t, int64_t>, std::string> rows;
  for (Json& e : out.phase("i")) {
    EXPECT_TRUE(e["cat"].is_string());
    if (e["name"] == "[memory]") memory.push_back(std::move(e));
  }
  ASSERT_EQ(memory.size(), 2u);
  EXPECT_EQ(memory[0]["args"]["Bytes"], 4096);
  EXPECT_EQ(memory[0]["args"]["Total Allocated"], 4096);
  EXPECT_EQ(memory[0]["args"]["Addr"], 0x7f0000000000);
  EXPECT_EQ(memory[1]["args"]["Bytes"], -4096);
  EXPECT_EQ(memory[1]["args"]["Total Allocated"], 0);
  for (const Json& e : out.phase("M")) {
    if (e["name"] == "thread_name") rows[{e["pid"], e["tid"]}] = e["args"]["name"];
  }
  const std::string main_row = rows.at({4242, 4242}), stream_row = rows.at({0, 7});
  EXPECT_EQ(main_row, "thread 4242 (python\xef\xbf\xbd)") << "a name that is not UTF-8 is made so";
  EXPECT_EQ(stream_row, "stream 7 ");
  for (const Json& e : out.slices()) {
    if (e["cat"] == "overhead") continue;
    EXPECT_TRUE(rows.contains({e["pid"], e["tid"]})) << "a row without a name: " << e;
  }
  out.named("layer \"0\"\n\x01 \xef\xbf\xbd");
}

TEST(Chrome, IdsOfSeveralProcessesDoNotMeet) {
  Trace trace = busy_trace(3);
  for (Process& p : trace.processes) p.header.set_pid(2);  // as in containers; hosts differ
  for (size_t i = 0; i < 3; ++i) trace.processes[i].header.set_host("node" + std::to_string(i));
  const Exported out(trace);
  std::map<int64_t, std::set<std::string>> labels;
  for (const Json& e : out.phase("M")) {
    if (e["name"] == "process_labels")
      labels[e["pid"]].insert(e["args"]["labels"].get<std::string>());
  }
  EXPECT_EQ(labels.size(), 6u) << "three processes, three GPUs";
  for (const auto& [pid, names] : labels) EXPECT_EQ(names.size(), 1u) << pid;
  std::set<int64_t> gpus;
  for (const Json& e : out.slices("kernel")) gpus.insert(e["pid"].get<int64_t>());
  EXPECT_EQ(gpus, (std::set<int64_t>{0, 1, 2}));
  EXPECT_FALSE(out.root.contains("distributedInfo"));
}

TEST(Chrome, EmptyTraceIsValid) {
  const Exported none{Trace()};
  EXPECT_TRUE(none.slices().empty());
  ByteBuffer bytes;
  append(bytes, ChunkKind::header, make_header());
  const Exported bare(load(view(bytes)));
  EXPECT_EQ(bare.root["traceEvents"].size(), 4u);
}

}  // namespace
}  // namespace gpuprof::test
