// SPDX-License-Identifier: Apache-2.0
// External ids in JSON: readers join by them, whatever the process and window.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "formats/io/file_bytes.h"
#include "formats/kineto_reader/reader.h"
#include "formats/writers/exporter.h"
#include "tests/unit/support/trace_maker.h"

namespace gpuprof::test {
namespace {

using Json = nlohmann::json;

constexpr uint32_t kOperators = 3;
constexpr uint64_t kSequence = 5;

std::string temporary_file() {
  return std::filesystem::temp_directory_path() /
         ("gpuprof_external_ids_" + std::to_string(::getpid()) + ".json");
}

// Operators "op <name> 0" and on, each with a kernel "kernel <name> 0"; a collective within an
// operator of its own; an operator and what it has in the backward pass; a batch of a data loader;
// two steps.
class WindowOfOperators {
 public:
  WindowOfOperators(int rank, uint32_t window) : thread_(4242 + static_cast<uint32_t>(rank)) {
    const std::string name = std::to_string(rank) + " " + std::to_string(window);
    const uint64_t begin = 2000 * window;
    encoder_.begin(window, 1);
    for (uint32_t i = 0; i < kOperators; ++i) {
      const uint64_t at = begin + 10 + 100 * i;
      op(at, at + 50, "op " + name + " " + std::to_string(i));
      launched(at + 10, 1 + 10 * window + i, "kernel " + name + " " + std::to_string(i));
    }
    op(begin + 400, begin + 500, "c10d::allreduce_ " + name);
    collective(begin + 410, rank);
    launched(begin + 415, 8 + 10 * window, "ncclDevKernel_AllReduce " + name);
    op(begin + 700, begin + 710, "forward " + name, false, kSequence);
    op(begin + 800, begin + 810, "backward " + name, true, kSequence);
    Record batch = make_record(Kind::nvtx_range, ticks_at(begin + 600), ticks_at(begin + 610));
    batch.nvtx.message = names_.intern("enumerate(DataLoader)#_Single.__next__");
    add(batch);

    dump::Header header = make_header(1, rank);
    header.set_window(window);
    append(bytes_, ChunkKind::header, header);
    append_events(bytes_, encoder_);
    append_steps(bytes_, {ticks_at(begin), ticks_at(begin + 500), ticks_at(begin + 1000)},
                 10 * window, 1);
    dump::Summary summary = make_summary(ticks_at(begin + 1000), 10 * window, 10 * window + 1);
    summary.set_window_begin_ticks(ticks_at(begin));
    append(bytes_, ChunkKind::summary, summary);
  }
  std::string bytes() const { return std::string(view(bytes_)); }

 private:
  void add(Record record, uint32_t correlation = 0) {
    record.correlation = correlation;
    if (!encoder_.add(record, thread_, "python")) throw std::bad_alloc();
  }
  void op(uint64_t begin_us, uint64_t end_us, const std::string& name, bool backward = false,
          uint64_t sequence = 0) {
    Record r = make_record(Kind::op, ticks_at(begin_us), ticks_at(end_us));
    r.framework.name = names_.intern(name);
    r.framework.backward = backward;
    r.framework.sequence = sequence;
    add(r);
  }
  void launched(uint64_t us, uint32_t correlation, const std::string& kernel) {
    add(make_record(Kind::launch, ticks_at(us), ticks_at(us + 4), names_.api("cudaLaunchKernel")),
        correlation);
    Record r = make_record(Kind::gpu_kernel, ticks_at(us + 10), ticks_at(us + 90));
    r.gpu_kernel.name = names_.intern(kernel);
    r.gpu_kernel.stream = 7, r.gpu_kernel.context = 1;
    add(r, correlation);
  }
  void collective(uint64_t us, int rank) {
    Record r = make_record(Kind::collective, ticks_at(us), ticks_at(us + 20),
                           names_.api("ncclAllReduce", 3));
    r.collective.communicator = 0x9000;
    r.collective.count = 1024, r.collective.data_type = 7;
    r.collective.peer = -1, r.collective.rank_count = 2;
    r.collective.rank = static_cast<uint16_t>(rank);
    add(r);
  }

  uint32_t thread_;
  MemoryNames names_;
  BatchEncoder encoder_{names_};
  ByteBuffer bytes_;
};

// Two windows of each of two ranks.
Trace two_windows_of_two_ranks() {
  std::string bytes;
  for (int rank = 0; rank < 2; ++rank) {
    for (uint32_t window = 0; window < 2; ++window) {
      bytes += WindowOfOperators(rank, window).bytes();
    }
  }
  return load(bytes);
}

// The slices of a file with all processes; no object of it has a member twice.
std::vector<Json> exported(const Trace& trace) {
  const std::string path = temporary_file();
  std::string error, text;
  EXPECT_TRUE(find_exporter("chrome")->write(trace, path, {}, error)) << error;
  EXPECT_TRUE(read_file(path, text, error)) << error;
  std::vector<std::set<std::string>> open;
  const Json root = Json::parse(text, [&open](int, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::object_start) open.emplace_back();
    if (event == Json::parse_event_t::object_end) open.pop_back();
    if (event == Json::parse_event_t::key) {
      EXPECT_TRUE(open.back().insert(value.get<std::string>()).second) << "twice: " << value;
    }
    return true;
  });
  std::vector<Json> out;
  for (const Json& event : root["traceEvents"]) {
    if (event["ph"] == "X" && event["cat"] != "Trace") out.push_back(event);
  }
  return out;
}

void read(const std::string& text, Trace& trace) {
  std::ofstream(temporary_file()) << text;
  read_kineto(temporary_file(), trace);
  EXPECT_TRUE(trace.problems.empty());
}

std::optional<uint64_t> id_of(const Json& slice) {
  const auto id = slice["args"].find("External id");
  if (id == slice["args"].end()) return std::nullopt;
  return id->get<uint64_t>();
}

bool is_named(const Json& slice) {
  return slice["cat"] == "cpu_op" || slice["cat"] == "user_annotation";
}

// Ids of operators, collectives and others that have one of their own, with what has them.
std::map<uint64_t, std::string> named(const std::vector<Json>& slices) {
  std::map<uint64_t, std::string> out;
  for (const Json& slice : slices) {
    const auto id = id_of(slice);
    if (!is_named(slice) || !id) continue;
    const bool fresh = out.emplace(*id, slice["name"]).second;
    EXPECT_TRUE(fresh) << *id << " is " << out[*id] << "'s and " << slice["name"] << "'s";
  }
  return out;
}

// Each kernel, and the operator or collective that its id names.
std::map<std::string, std::string> owners(const std::vector<Json>& slices) {
  const std::map<uint64_t, std::string> ids = named(slices);
  std::map<std::string, std::string> out;
  for (const Json& slice : slices) {
    if (slice["cat"] != "kernel") continue;
    const auto id = id_of(slice);
    out[slice["name"]] = id && ids.contains(*id) ? ids.at(*id) : "none";
  }
  return out;
}

std::map<std::string, std::string> true_owners() {
  std::map<std::string, std::string> out;
  for (const char* window : {"0 0", "0 1", "1 0", "1 1"}) {
    for (uint32_t i = 0; i < kOperators; ++i) {
      const std::string name = std::string(window) + " " + std::to_string(i);
      out["kernel " + name] = "op " + name;
    }
    out["ncclDevKernel_AllReduce " + std::string(window)] = "nccl:all_reduce";
  }
  return out;
}

class ExternalIds : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(temporary_file()); }
};

TEST_F(ExternalIds, OfAFileNameOneThingEach) {
  const std::vector<Json> slices = exported(two_windows_of_two_ranks());
  // Per window: operators, three more of them, the collective, the batch, two steps.
  EXPECT_EQ(named(slices).size(), 4 * (kOperators + 3 + 1 + 1 + 2));
  EXPECT_EQ(owners(slices), true_owners());
}

TEST_F(ExternalIds, OfAWindowBeginWithItsOperators) {
  const std::map<uint64_t, std::string> ids =
      named(exported(load(WindowOfOperators(0, 0).bytes())));
  ASSERT_EQ(ids.size(), kOperators + 7);
  EXPECT_EQ(ids.at(1), "op 0 0 0");
  EXPECT_EQ(ids.at(4), "c10d::allreduce_ 0 0");
  EXPECT_EQ(ids.at(7), "nccl:all_reduce");
  EXPECT_EQ(ids.at(10), "ProfilerStep#1");
}

// What gpuprof reads of its own file, and writes once more.
TEST_F(ExternalIds, AreReadBackAndKept) {
  const std::vector<Json> first = exported(two_windows_of_two_ranks());
  Trace trace;
  read_kineto(temporary_file(), trace);
  ASSERT_EQ(trace.processes.size(), 2u);
  for (const Process& process : trace.processes) {
    for (const Event event : process.events) {
      const std::string_view name = trace.text(trace.shape(event).name);
      if (trace.shape(event).kind != Kind::gpu_kernel || !name.starts_with("kernel")) continue;
      const EventIndex op = process.operator_of(event);
      ASSERT_NE(op, EventIndex::none);
      EXPECT_EQ("op " + std::string(name.substr(7)), trace.text(trace.shape_of(process, op).name));
    }
  }
  const std::vector<Json> second = exported(trace);
  EXPECT_EQ(named(second).size(), named(first).size());
  EXPECT_EQ(owners(second), true_owners());
}

TEST_F(ExternalIds, OfArrowsAreThoseOfOneWindow) {
  exported(two_windows_of_two_ranks());
  Trace trace;
  read_kineto(temporary_file(), trace);
  std::set<std::string> forward, backward;
  for (const Process& process : trace.processes) {
    for (const ForwardBackward& pair : process.forward_backward) {
      const std::string_view from = trace.text(trace.shape_of(process, pair.forward).name),
                             to = trace.text(trace.shape_of(process, pair.backward).name);
      EXPECT_EQ(from.substr(from.find(' ')), to.substr(to.find(' ')));
      EXPECT_TRUE(forward.emplace(from).second && backward.emplace(to).second);
    }
  }
  EXPECT_EQ(forward.size(), 4u);
}

std::string slice(std::string_view category, std::string_view name, int pid, int us,
                  std::string_view args) {
  return fmt::format(
      R"({{"ph":"X","cat":"{}","name":"{}","pid":{},"tid":{},"ts":{},"dur":5,"args":{{{}}}}})",
      category, name, pid, category == "kernel" ? 7 : pid, us, args);
}

// Of PyTorch: an operator, its launch and kernel, and a kernel whose operator is not there.
std::string pytorch_rank(int pid, uint64_t first) {
  const auto id = [&](uint64_t more) { return fmt::format(R"("External id":{})", first + more); };
  const std::string gpu = R"(,"device":0,"context":1,"stream":7,"correlation":)";
  return R"({"traceEvents":[)" + slice("cpu_op", "aten::mm", pid, 10, id(0)) + "," +
         slice("cuda_runtime", "cudaLaunchKernel", pid, 11, id(0) + R"(,"correlation":1)") + "," +
         slice("kernel", "gemm", 0, 20, id(0) + gpu + "1") + "," +
         slice("kernel", "lost", 0, 30, id(1) + gpu + "2") + "," +
         slice("cpu_op", "aten::add", pid, 40, id(2)) + "]}";
}

// Ids of the slices of this name, in order of the processes.
std::vector<uint64_t> ids_of(const std::vector<Json>& slices, std::string_view name) {
  std::vector<uint64_t> out;
  for (const Json& slice : slices) {
    if (slice["name"] == name) out.push_back(id_of(slice).value_or(0));
  }
  return out;
}

TEST_F(ExternalIds, OfOtherTracesStayUnlessTheyMeet) {
  using Ids = std::vector<uint64_t>;
  const auto both = [](uint64_t first) {
    Trace trace;
    read(pytorch_rank(8, 77), trace);
    read(pytorch_rank(9, first), trace);
    EXPECT_EQ(trace.processes.size(), 2u);
    return exported(trace);
  };
  const std::vector<Json> apart = both(100);
  EXPECT_EQ(ids_of(apart, "aten::mm"), (Ids{77, 100}));
  EXPECT_EQ(ids_of(apart, "lost"), (Ids{78, 101}));
  const std::vector<Json> meet = both(75);  // up to 79 the first rank has them
  EXPECT_EQ(ids_of(meet, "aten::mm"), (Ids{77, 154}));
  EXPECT_EQ(ids_of(meet, "cudaLaunchKernel"), (Ids{77, 154}));
  EXPECT_EQ(ids_of(meet, "gemm"), (Ids{77, 154}));
  EXPECT_EQ(ids_of(meet, "lost"), (Ids{78, 155}));
  EXPECT_EQ(ids_of(meet, "aten::add"), (Ids{79, 156}));
}

}  // namespace
}  // namespace gpuprof::test
