// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>

#include "collector/record/recorder.h"
#include "formats/io/file_bytes.h"
#include "formats/kineto_reader/call_kinds.h"
#include "formats/kineto_reader/is_kineto.h"
#include "formats/kineto_reader/reader.h"

namespace gpuprof {
namespace {

class KinetoReader : public testing::Test {
 protected:
  void SetUp() override { path_ = testing::TempDir() + "kineto_" + std::to_string(::getpid()); }
  void TearDown() override { std::filesystem::remove(path_); }

  void write(std::string_view bytes) {
    const int file = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ASSERT_EQ(::write(file, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    ::close(file);
  }
  // Reads it at once, and in the smallest stretches, which must come to the same.
  const Process& read(const std::string& bytes) {
    write(bytes);
    trace_ = Trace();
    const KinetoFile file = read_kineto(path_, trace_);
    EXPECT_EQ(file.bytes, bytes.size());
    for (const size_t stretch : {1, 7, 64, 301}) {
      for (const unsigned threads : {1u, 3u}) {
        Trace same;
        read_kineto(path_, same, {threads, stretch, 1 << 20});
        EXPECT_EQ(facts(same), facts(trace_)) << "stretches of " << stretch;
      }
    }
    static const Process none;
    return trace_.processes.empty() ? none : trace_.processes[0];
  }
  const Process& events(const std::string& list) {
    return read("{\"traceEvents\":[" + list + "]}");
  }

  static std::string facts(const Trace& trace) {
    std::string out;
    for (const Process& process : trace.processes) {
      out += "process " + std::to_string(process.header.pid()) + "\n";
      for (const Event& e : process.events) {
        out += std::string(trace.text(trace.shape(e).name)) + " " + std::to_string(e.begin) + " " +
               std::to_string(e.end) + " " + std::to_string(e.correlation) + " " +
               std::string(trace.text(trace.shape(e).args)) + " " +
               std::string(trace.text(process.extra(e).args)) + "\n";
      }
    }
    for (const Problem& problem : trace.problems) out += problem.text() + "\n";
    return out;
  }

  Event only(Kind kind) const {
    std::optional<Event> found;
    for (const Process& process : trace_.processes) {
      for (const Event& e : process.events) {
        if (trace_.shape(e).kind != kind) continue;
        EXPECT_FALSE(found) << "two of " << kind_name(kind);
        found = e;
      }
    }
    EXPECT_TRUE(found) << "no " << kind_name(kind);
    return found.value_or(Event());
  }
  const EventExtra& extra(const Event& e) const { return trace_.processes[0].extra(e); }
  const Lane& lane(const Event& e) const { return trace_.processes[0].lane(e); }
  std::string_view text(StringIndex index) const { return trace_.text(index); }
  std::string problems() const {
    std::string out;
    for (const Problem& problem : trace_.problems) {
      out += std::to_string(problem.offset) + " " + problem.reason + "\n";
    }
    return out;
  }

  std::string path_;
  Trace trace_;
};

constexpr const char* kOperator =
    R"j({"ph":"X","cat":"cpu_op","name":"aten::mm","pid":9,"tid":11,"ts":10.5,"dur":100.25,"args":{)j"
    R"j("External id":77,"Record function id":0,"Ev Idx":4,"Input Dims":[[8,3],[]],"Input type":["float",""],)j"
    R"j("Sequence number":5,"Fwd thread id":0,"Call stack":"a.py(3): f;b.py(4): g","Concrete Inputs":["","2"]}})j";
constexpr const char* kLaunch =
    R"j({"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":11,"ts":12.000,"dur":5.001,)j"
    R"j("args":{"External id":77,"cbid":211,"correlation":1234}})j";
constexpr const char* kKernel =
    R"j({"ph":"X","cat":"kernel","name":"gemm<float>(int)", "pid" : 3,
                     "tid" : 7, "ts" : 20.125, "dur" : 33, "args" : {)j"
    R"j("External id":77,"queued":0,"device":3,"context":1,"stream":7,"correlation":1234,)j"
    R"j("registers per thread":32,"shared memory":4096,"blocks per SM":0.5,"warps per SM":4.0,)j"
    R"j("grid":[1, 2,3],"block":[128,1,1],"est. achieved occupancy %":6}})j";

std::string join(std::initializer_list<std::string> events) {
  std::string out;
  for (const std::string& each : events) out += (out.empty() ? "" : ",\n") + each;
  return out;
}

TEST_F(KinetoReader, OperatorLaunchAndKernelBelongTogether) {
  const Process& p = read(R"j({"schemaVersion":1,"baseTimeNanoseconds":1700000000000000000,
    "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8},"trace_id":"ab",
    "deviceProperties":[{"id":0,"name":"H100","numSms":132,"totalGlobalMem":85000000000}],
    "traceEvents":[)j" + join({kKernel, kLaunch, kOperator}) +
                          R"j(],"host_name":"n1","traceName":"x"})j");
  EXPECT_EQ(problems(), "");
  EXPECT_EQ(p.completeness, Completeness::complete);
  EXPECT_EQ(p.source, Source::kineto);
  EXPECT_EQ(p.header.rank(), 3);
  EXPECT_EQ(p.header.world_size(), 8);
  EXPECT_EQ(p.header.host(), "n1");
  EXPECT_EQ(p.header.pid(), 9u);
  EXPECT_EQ(p.header.device(0).multiprocessors(), 132u);
  EXPECT_NE(p.metadata.find(R"j("trace_id":"ab")j"), std::string::npos);
  const Event &op = only(Kind::op), &launch = only(Kind::launch), &kernel = only(Kind::gpu_kernel);
  EXPECT_EQ(op.begin, 1700000000000010500);
  EXPECT_EQ(op.end, 1700000000000110750);
  EXPECT_EQ(launch.end - launch.begin, 5001);
  EXPECT_EQ(p.index_of(kernel), launch.partner);
  EXPECT_EQ(p.index_of(launch), kernel.partner);
  EXPECT_EQ(p.operator_of(kernel), p.index_of(op));
  EXPECT_EQ(p.operator_of(launch), p.index_of(op));
  const Shape& shape = trace_.shape(op);
  EXPECT_EQ(text(shape.input_dims), "[[8,3],[]]");
  EXPECT_EQ(text(shape.input_types), R"j(["float",""])j");
  EXPECT_EQ(text(shape.call_stack), "a.py(3): f;b.py(4): g");
  EXPECT_EQ(extra(op).value, 77u);
  EXPECT_EQ(extra(op).bytes, 5u);    // Ev Idx 4
  EXPECT_EQ(extra(op).address, 6u);  // sequence number 5
  EXPECT_EQ(text(extra(op).args), R"j("Record function id":0,"Concrete Inputs":["","2"])j");
  const Shape& k = trace_.shape(kernel);
  EXPECT_EQ(k.grid.y, 2u);
  EXPECT_EQ(k.block.x, 128u);
  EXPECT_EQ(k.registers_per_thread, 32u);
  EXPECT_EQ(k.dynamic_shared_bytes, 4096u);
  EXPECT_EQ(lane(kernel).type, LaneType::stream);
  EXPECT_EQ(lane(kernel).device, 3u);
  EXPECT_EQ(lane(kernel).stream, 7u);
  EXPECT_EQ(text(k.args),
            R"j("queued":0,"blocks per SM":0.5,"warps per SM":4.0,"est. achieved occupancy %":6)j");
  EXPECT_EQ(kernel.extra, 0u);
}

// Rows of threads with names for ids come behind those of GPUs.
TEST_F(KinetoReader, WorkOfACallBehindItHasItsOperator) {
  const Process& p = events(
      std::string(kOperator) +
      R"j(,{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":"worker","ts":20,"dur":5,)j"
      R"j("args":{"External id":77,"correlation":5}},)j"
      R"j({"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":30,"dur":2,"args":{"stream":7,"correlation":5}})j");
  const Event launch = only(Kind::launch), kernel = only(Kind::gpu_kernel);
  ASSERT_LT(number(kernel.index), number(launch.index));
  EXPECT_EQ(p.operator_of(launch), p.index_of(only(Kind::op)));
  EXPECT_EQ(p.operator_of(kernel), p.index_of(only(Kind::op)));
}

// What is the same for all kernels of a shape does not take room for each; what differs is kept.
TEST_F(KinetoReader, ArgumentsOfTheShapeAreKeptOnce) {
  const std::string same = R"j("blocks per SM":0.5,"warps per SM":4.0)j";
  std::string kernels;
  for (int i = 0; i < 50; ++i) {
    kernels += (i ? "," : "") +
               std::string(R"j({"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":)j" +
                           std::to_string(i * 10) + R"j(,"dur":2,"args":{"queued":)j" +
                           (i < 48 ? "0" : std::to_string(i)) + R"j(,"stream":7,)j" + same + "}}");
  }
  const Process& p = events(kernels);
  ASSERT_EQ(p.events.size(), 50u);
  EXPECT_EQ(p.extras.size(), 3u);  // none, and of the last two
  for (uint32_t i = 0; i < 50; ++i) {
    const bool queued = i >= 48;
    EXPECT_EQ(text(trace_.shape(p.events[i]).args), queued ? same : R"j("queued":0,)j" + same);
    EXPECT_EQ(text(extra(p.events[i]).args),
              queued ? R"j("queued":)j" + std::to_string(i) : std::string());
  }
}

TEST_F(KinetoReader, OldSpelling) {
  const Process& p = events(join(
      {R"j({"name": "process_name", "ph": "M", "ts": 1623142623460016, "pid": 25738, "tid": 0, "args": {"name": "python"}})j",
       R"j({"ph": "X", "cat": "Operator", "name": "ProfilerStep#5", "pid": 25738, "tid": "25738", "ts": 1623142623460111, "dur": 90, "args": {"External id": 2, "Trace name": "P"}})j",
       R"j({"ph": "X", "cat": "Runtime", "name": "cudaMemcpyAsync", "pid": 25738, "tid": "25738", "ts": 1623142623460120, "dur": 3, "args": {"cbid": 41, "correlation": 9, "external id": 2, "external ts": 4}})j",
       R"j({"ph": "s", "id": 9, "pid": 25738, "tid": 25738, "ts": 1623142623460120, "cat": "async", "name": "launch"})j",
       R"j({"ph": "X", "cat": "Memcpy", "name": "Memcpy HtoD (Pageable -> Device)", "pid": 0, "tid": "stream 7", "ts": 1623142623460130, "dur": 2, "args": {"device": 0, "context": 1, "stream": 7, "correlation": 9, "external id": 2, "bytes": 64}})j",
       R"j({"ph": "f", "id": 9, "pid": 0, "tid": "stream 7", "ts": 1623142623460130, "cat": "async", "name": "launch", "bp": "e"})j",
       R"j({"ph": "X", "cat": "Memset", "name": "Memset (Device)", "pid": 0, "tid": "stream 13", "ts": 1623142623460140, "dur": 1})j",
       R"j({"ph": "X", "cat": "Trace", "ts": 1623142623460016, "dur": 1000, "pid": "Traces", "tid": "PyTorch Profiler", "name": "PyTorch Profiler (0)"
})j"}));
  EXPECT_EQ(problems(), "");
  const Event &op = only(Kind::op), &call = only(Kind::copy), &copy = only(Kind::gpu_copy);
  EXPECT_EQ(op.begin, 1623142623460111000);
  EXPECT_EQ(lane(op).thread_id, 25738u);
  EXPECT_EQ(call.partner, p.index_of(copy));
  EXPECT_EQ(p.operator_of(copy), p.index_of(op));
  EXPECT_EQ(trace_.shape(copy).direction, 1u);
  EXPECT_EQ(trace_.shape(copy).source_kind, 1u);
  EXPECT_EQ(trace_.shape(copy).destination_kind, 3u);
  EXPECT_EQ(extra(copy).bytes, 64u);
  EXPECT_EQ(lane(only(Kind::gpu_set)).stream, 13u);
  ASSERT_EQ(p.window_steps().size(), 1u);
  EXPECT_EQ(p.window_steps()[0].step, 5u);
  EXPECT_TRUE(p.steps_are_events);
  EXPECT_EQ(p.window_begin, 1623142623460016000);
  EXPECT_EQ(p.header.command(0), "python");
}

TEST_F(KinetoReader, WhatFrameworksSayOfThemselves) {
  const Process& p = events(join(
      {R"j({"ph":"X","cat":"user_annotation","name":"ProfilerStep#2","pid":9,"tid":9,"ts":0,"dur":50,"args":{"External id":1}})j",
       R"j({"ph":"X","cat":"gpu_user_annotation","name":"ProfilerStep#2","pid":0,"tid":7,"ts":5,"dur":60,"args":{"External id":1}})j",
       R"j({"ph":"X","cat":"python_function","name":"a.py(1): f","pid":9,"tid":9,"ts":1,"dur":9,"args":{"Python id":2,"Python parent id":1,"CallFrom":"x"}})j",
       R"j({"ph":"X","cat":"python_function","name":"nn.Module: Linear_0","pid":9,"tid":9,"ts":2,"dur":7,"args":{"Python id":3,"Python parent id":null,"Python module id":0}})j",
       R"j({"ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]","pid":9,"tid":9,"ts":3,"args":{"Total Reserved":200,"Total Allocated":100,"Bytes":-64,"Addr":139637976727552,"Device Id":0,"Device Type":1}})j",
       R"j({"ph":"X","cat":"cuda_sync","name":"Stream Sync","pid":0,"tid":7,"ts":4,"dur":2,"args":{"cuda_sync_kind":"Stream Sync","stream":-1,"correlation":8,"device":0,"context":1}})j",
       R"j({"ph":"X","cat":"overhead","name":"Buffer Flush","pid":-1,"tid":0,"ts":4,"dur":2})j",
       R"j({"ph":"X","cat":"hpu_thing","name":"x","pid":9,"tid":9,"ts":4,"dur":2,"args":{"correlation":1}})j",
       R"j({"ph":"i","s":"g","name":"Record Window End","pid":"","tid":"","ts":99})j",
       R"j({"ph":"C","cat":"hardware_counters","name":"HBM","pid":"GPU 0 Counters","ts":3,"args":{"":1.5}})j"}));
  EXPECT_EQ(problems(), "");
  EXPECT_EQ(trace_.shape(only(Kind::gpu_annotation)).name,
            trace_.shape(only(Kind::annotation)).name);
  EXPECT_EQ(extra(only(Kind::python_function)).value, 3u);
  EXPECT_EQ(extra(only(Kind::python_function)).address, 2u);
  EXPECT_EQ(text(extra(only(Kind::python_function)).args), R"j("CallFrom":"x")j");
  EXPECT_EQ(extra(only(Kind::module)).address, 0u);
  EXPECT_EQ(extra(only(Kind::module)).address2, 1u);
  EXPECT_EQ(text(extra(only(Kind::module)).args), R"j("Python parent id":null)j");
  const Event& tensor = only(Kind::tensor);
  EXPECT_EQ(static_cast<int64_t>(extra(tensor).bytes), -64);
  EXPECT_EQ(extra(tensor).address, 139637976727552u);
  EXPECT_EQ(extra(tensor).address2, 100u);
  EXPECT_EQ(trace_.shape(tensor).device_type, 1u);
  EXPECT_EQ(trace_.shape(only(Kind::gpu_sync)).cupti_type, 3u);
  EXPECT_EQ(trace_.shape(only(Kind::gpu_sync)).stream, Shape::kAbsent);
  EXPECT_EQ(lane(only(Kind::overhead)).type, LaneType::overhead);
  EXPECT_EQ(text(trace_.shape(only(Kind::other)).detail), "hpu_thing");
  EXPECT_EQ(text(extra(only(Kind::other)).args), R"j("correlation":1)j");
  EXPECT_EQ(trace_.shape(only(Kind::instant)).value, static_cast<uint32_t>('g'));
  EXPECT_EQ(lane(only(Kind::instant)).type, LaneType::other);
  ASSERT_EQ(p.named_counters.size(), 1u);
  EXPECT_EQ(p.named_counters[0].points[0].value, 1.5);
  EXPECT_EQ(p.gpu_times_missing, "the trace has no GPU events");
}

TEST_F(KinetoReader, ForwardAndBackwardAreJoined) {
  const Process& p = events(join(
      {R"j({"ph":"X","cat":"cpu_op","name":"f","pid":9,"tid":1,"ts":1,"dur":9})j",
       R"j({"ph":"X","cat":"cpu_op","name":"b","pid":9,"tid":2,"ts":20,"dur":9})j",
       R"j({"ph":"s","id":5,"pid":9,"tid":1,"ts":1,"cat":"fwdbwd","name":"fwdbwd"})j",
       R"j({"ph":"f","id":5,"pid":9,"tid":2,"ts":20,"cat":"fwdbwd","name":"fwdbwd","bp":"e"})j"}));
  ASSERT_EQ(p.forward_backward.size(), 1u);
  EXPECT_EQ(text(trace_.shape(p.event(p.forward_backward[0].forward)).name), "f");
  EXPECT_EQ(text(trace_.shape(p.event(p.forward_backward[0].backward)).name), "b");
}

// As torch.profiler writes the Python functions of a thread that it saw call nothing: with the pid
// of GPU 0.
TEST_F(KinetoReader, PythonFunctionsAloneMakeNoProcess) {
  const auto function = [](int pid, int tid) {
    return R"j({"ph":"X","cat":"python_function","name":"a.py(1): f","pid":)j" +
           std::to_string(pid) + R"j(,"tid":)j" + std::to_string(tid) +
           R"j(,"ts":1,"dur":9,"args":{"Python id":1}})j";
  };
  for (const int gpu : {0, 3}) {  // the trace's own, or another
    const Process& p = events(join({kLaunch, kKernel, kOperator, function(gpu, 0)}));
    ASSERT_EQ(trace_.processes.size(), 1u);
    EXPECT_EQ(p.header.pid(), 9u);
    const Lane& of_function = lane(only(Kind::python_function));
    EXPECT_EQ(of_function.type, LaneType::other);
    EXPECT_EQ(of_function.thread_name, "Python, thread not known");
  }
  events(function(8, 8));
  EXPECT_EQ(trace_.processes.at(0).header.pid(), 8u) << "there is nothing else";
  EXPECT_EQ(lane(only(Kind::python_function)).type, LaneType::thread);
  const auto label = [](int pid) {
    return R"j({"ph":"M","name":"process_labels","pid":)j" + std::to_string(pid) +
           R"j(,"tid":0,"args":{"labels":"CPU"}})j";
  };
  events(join({kLaunch, kOperator, function(8, 8), label(8)}));
  EXPECT_EQ(trace_.processes.size(), 2u);
}

TEST_F(KinetoReader, AnnotationsAreInTheContextOfTheirStreamsWork) {
  const auto annotation = [](int stream) {
    const std::string number = std::to_string(stream);
    return R"j({"ph":"X","cat":"gpu_user_annotation","name":"forward","pid":3,"tid":)j" + number +
           R"j(,"ts":20,"dur":40,"args":{"External id":5}})j";
  };
  events(join({annotation(7), kLaunch, kKernel, kOperator}));
  EXPECT_EQ(lane(only(Kind::gpu_annotation)).context, 1u);
  EXPECT_EQ(&lane(only(Kind::gpu_annotation)), &lane(only(Kind::gpu_kernel)));
  events(join({annotation(8), kLaunch, kKernel, kOperator}));
  EXPECT_EQ(lane(only(Kind::gpu_annotation)).context, 0u) << "nothing else is on that stream";
}

TEST_F(KinetoReader, CopiesAreNamedAlikeByAllExporters) {
  struct Row {
    const char *name, *args, *usual;
    uint32_t direction, from, to;
  };
  constexpr const char* kNewer =
      R"j(,"copy kind":"HtoD","src kind":"pageable","dst kind":"device")j";
  constexpr const char* kStatic = R"j(,"copy kind":8,"src kind":3,"dst kind":"device_static")j";
  for (const Row& row :
       {Row{"Memcpy HtoD (Pageable -> Device)", "", "Memcpy HtoD (Pageable -> Device)", 1, 1, 3},
        {"Memcpy", kNewer, "Memcpy HtoD (Pageable -> Device)", 1, 1, 3},
        {"Memcpy", kStatic, "Memcpy DtoD (Device -> Device Static)", 8, 3, 6},
        {"Memcpy", "", "Memcpy", 0, 0, 0},
        {"Memcpy M2D (MEMORY(Unknown) -> DEVICE)", "", "Memcpy HtoD (Pageable -> Device)", 1, 1, 3},
        {"Memcpy D2H (DEVICE -> HOST)", "", "Memcpy DtoH (Device -> Pinned)", 2, 3, 2},
        {"Memcpy S2D (SHARED -> DEVICE)", "", "Memcpy S2D (SHARED -> DEVICE)", 0, 5, 3},
        {"Memcpy HtoD (Host -> Device)", "", "Memcpy HtoD (Host -> Device)", 1, 0, 3}}) {
    events(std::string(R"j({"ph":"X","cat":"gpu_memcpy","name":")j") + row.name +
           R"j(","pid":0,"tid":7,"ts":5,"dur":1,"args":{"device":0,"stream":7,"bytes":4)j" +
           row.args + "}}");
    const Shape& shape = trace_.shape(only(Kind::gpu_copy));
    EXPECT_EQ(text(shape.label), row.usual);
    EXPECT_EQ(shape.direction, row.direction) << row.name;
    EXPECT_EQ(shape.source_kind, row.from) << row.name;
    EXPECT_EQ(shape.destination_kind, row.to) << row.name;
  }
  events(R"j({"ph":"X","cat":"gpu_memset","name":"Memset","pid":0,"tid":7,"ts":5,"dur":1,)j"
         R"j("args":{"device":0,"stream":7,"bytes":4,"memory kind":"device"}})j");
  EXPECT_EQ(text(trace_.shape(only(Kind::gpu_set)).label), "Memset (Device)");
}

TEST_F(KinetoReader, AmdTrace) {
  events(join(
      {R"j({"ph":"X","cat":"cuda_runtime","name":"hipExtModuleLaunchKernel","pid":9,"tid":1,"ts":1,"dur":9,"args":{"correlation":4,"kernel":"k"}})j",
       R"j({"ph":"X","cat":"kernel","name":"k.kd","pid":2,"tid":0,"ts":20,"dur":9,"args":{"device":2,"stream":0,"correlation":4,"grid":[64,1,1],"block":[64,1,1],"kind":"Dispatch Kernel"}})j",
       R"j({"ph":"X","cat":"gpu_memcpy","name":"CopyHostToDevice","pid":2,"tid":0,"ts":40,"dur":9,"args":{"device":2,"stream":0,"correlation":5,"bytes":8,"src":"0x7f"}})j"}));
  EXPECT_EQ(problems(), "");
  EXPECT_NE(only(Kind::launch).partner, EventIndex::none);
  EXPECT_EQ(lane(only(Kind::gpu_kernel)).device, 2u);
  EXPECT_EQ(extra(only(Kind::gpu_copy)).bytes, 8u);
  EXPECT_EQ(text(extra(only(Kind::gpu_copy)).args), R"j("src":"0x7f")j");
}

TEST_F(KinetoReader, ExternalIdWithoutItsOperatorIsKept) {
  events(kLaunch);
  EXPECT_EQ(text(trace_.shape(only(Kind::launch)).args), R"j("cbid":211)j");
  EXPECT_EQ(text(extra(only(Kind::launch)).args), R"j("External id":77)j");
}

TEST_F(KinetoReader, ArraysAreTracesToo) {
  read(std::string("\xef\xbb\xbf [\n") + kLaunch + "\n]");
  EXPECT_EQ(problems(), "");
  only(Kind::launch);
}

TEST_F(KinetoReader, ObjectsThatLookLikeEventsWithinArguments) {
  const std::string inner =
      R"j({"ph":"X","cat":"cpu_op","name":"inner","ts":1,"dur":1,"pid":1,"tid":1})j";
  std::string list;
  for (int i = 0; i < 20; ++i) {
    list += (i ? "," : "") +
            std::string(R"j({"ph":"X","cat":"cpu_op","name":"outer","pid":9,"tid":1,"ts":)j") +
            std::to_string(i) + R"j(,"dur":1,"args":{"list":[)j" + join({inner, inner, inner}) +
            "]}}";
  }
  const Process& p = events(list);
  EXPECT_EQ(problems(), "");
  EXPECT_EQ(p.events.size(), 20u);
}

// ---- faults: what is readable is read, and one line says what is not ----

TEST_F(KinetoReader, CutWithinAnEvent) {
  const std::string bytes = "{\"traceEvents\":[\n" + join({kOperator, kLaunch});
  const std::string cut = bytes.substr(0, bytes.size() - 20);
  const Process& p = read(cut);
  EXPECT_EQ(p.completeness, Completeness::truncated);
  only(Kind::op);
  EXPECT_EQ(p.events.size(), 1u);
  EXPECT_EQ(problems(), std::to_string(bytes.find(kLaunch)) +
                            " the file ends within an event, which was not read\n");
}

TEST_F(KinetoReader, CutBetweenEvents) {
  const std::string bytes = "{\"traceEvents\":[\n" + join({kOperator, kLaunch}) + ",\n";
  EXPECT_EQ(read(bytes).completeness, Completeness::truncated);
  only(Kind::launch);
  EXPECT_EQ(problems(),
            std::to_string(bytes.size()) + " the file ends before its array of events does\n");
}

TEST_F(KinetoReader, NumbersThatAreNone) {
  const std::string bad =
      R"j({"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":2,"args":{"stream":7,"blocks per SM":NaN,)j"
      R"j("warps per SM":-Infinity,"occ":"inf","deep":[1,Infinity],"correlation":3}})j";
  events(bad);
  EXPECT_EQ(text(extra(only(Kind::gpu_kernel)).args), R"j("occ":"inf")j");
  EXPECT_EQ(text(trace_.shape(only(Kind::gpu_kernel)).args), "");
  EXPECT_EQ(only(Kind::gpu_kernel).correlation, 3u);
  EXPECT_NE(problems().find("values that JSON does not have"), std::string::npos) << problems();
  EXPECT_EQ(trace_.problems.size(), 1u);
  EXPECT_EQ(trace_.problems[0].offset, 16u);
}

TEST_F(KinetoReader, BackslashesAndBytes) {
  events(join(
      {R"j({"ph":"X","cat":"cpu_op","name":"a\q\u00e9\ud83d\ude00\n\"","pid":1,"tid":1,"ts":1,"dur":2})j",
       "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"\xff!\",\"pid\":1,\"tid\":1,\"ts\":3,\"dur\":2,"
       "\"args\":{\"x\":\"\xfe\\z\"}}"}));
  const Process& p = trace_.processes[0];
  ASSERT_EQ(p.events.size(), 2u);
  EXPECT_EQ(text(trace_.shape(p.events[0]).name), "a\\q\u00e9\U0001F600\n\"");
  EXPECT_EQ(text(trace_.shape(p.events[1]).name), "\xff!");
  EXPECT_EQ(text(p.extra(p.events[1]).args), "\"x\":\"\xef\xbf\xbd\\\\z\"");
  EXPECT_NE(problems().find("backslashes that JSON does not know, kept as they are: 2"),
            std::string::npos)
      << problems();
  EXPECT_NE(problems().find("not UTF-8: 1"), std::string::npos) << problems();
}

TEST_F(KinetoReader, BrokenEventIsPassedOver) {
  const std::string broken = R"j({"ph":"X","cat":"cpu_op" "name":"x"})j";
  const Process& p = events(join({kOperator, broken, kLaunch}));
  EXPECT_EQ(p.completeness, Completeness::damaged);
  only(Kind::op);
  only(Kind::launch);
  EXPECT_EQ(problems(), std::to_string(16 + std::string(kOperator).size() + 2) +
                            " not readable as events and passed over: 1; this is the first\n");
}

TEST_F(KinetoReader, WhatCannotBeDrawnIsSaid) {
  const Process& p =
      events(join({R"j({"ph":"X","cat":"cpu_op","name":"x","pid":1,"tid":1})j",
                   R"j({"ph":"X","cat":"cpu_op","name":"y","pid":1,"tid":1,"ts":5,"dur":-3})j",
                   R"j({"ph":"B","name":"z","pid":1,"tid":1,"ts":5})j"}));
  EXPECT_EQ(p.events.size(), 1u);
  EXPECT_EQ(p.events[0].begin, p.events[0].end);
  EXPECT_EQ(trace_.problems.size(), 3u) << problems();
}

TEST_F(KinetoReader, HostileNumbers) {
  const Process& p = events(join(
      {R"j({"ph":"X","cat":"cpu_op","name":"x","pid":18446744073709551615,"tid":-5,"ts":1e300,"dur":1e300})j",
       R"j({"ph":"X","cat":"kernel","name":"k","pid":-3,"tid":99999999999,"ts":-1,"dur":0,"args":{"correlation":4294967296,"grid":[1,2]}})j",
       R"j({"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":7,"tid":10000000001,"ts":1.23456789,"dur":1E1,"args":{"External id":18446744073709551615}})j"}));
  EXPECT_EQ(p.events.size(), 2u);  // the first has no time that can be held
  EXPECT_NE(problems().find("more than 73 years, left out: 1;"), std::string::npos) << problems();
  EXPECT_NE(problems().find("correlation ids beyond 4294967295"), std::string::npos) << problems();
  for (const Event& e : p.events) EXPECT_LE(e.begin, e.end);
  EXPECT_EQ(only(Kind::launch).begin, 1235);
  EXPECT_EQ(only(Kind::launch).end, 11235);
  EXPECT_EQ(text(extra(only(Kind::gpu_kernel)).args), R"j("correlation":4294967296,"grid":[1,2])j");
}

TEST_F(KinetoReader, NotATrace) {
  read(R"j({"a":1})j");
  EXPECT_EQ(problems(), "0 has no traceEvents: it is not a trace\n");
}

std::string gzip(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

TEST_F(KinetoReader, TracesAreKnownByTheirHeadWhereEventsAreFar) {
  const std::string far(1 << 19, ' ');
  const auto is_found = [&](const std::string& head) {
    write("{" + head + far + R"j("traceEvents":[]})j");
    return kineto_traces({path_}).size() == 1;
  };
  EXPECT_TRUE(is_found(R"j("schemaVersion":1,"deviceProperties":[],"distributedInfo":{},)j"));
  EXPECT_TRUE(is_found(R"j("schemaVersion":1,"deviceProperties":[],)j"));
  EXPECT_FALSE(is_found(R"j("schemaVersion":2,"mediaType":"x",)j")) << "others have versions, too";
}

TEST_F(KinetoReader, GzipOfSeveralMembers) {
  const std::string text = "{\"traceEvents\":[\n" + join({kOperator, kLaunch, kKernel}) + "]}";
  read(gzip(text.substr(0, 100)) + gzip("") + gzip(text.substr(100)));
  EXPECT_EQ(problems(), "");
  only(Kind::op);
  only(Kind::gpu_kernel);
}

TEST_F(KinetoReader, GzipThatEndsEarly) {
  std::string text = "{\"traceEvents\":[\n" + std::string(kOperator);
  for (int i = 0; i < 2000; ++i) text += std::string(",\n") + kKernel;
  const std::string packed = gzip(text + "]}");
  read(packed.substr(0, packed.size() - 12));
  EXPECT_EQ(trace_.processes[0].completeness, Completeness::damaged);
  EXPECT_NE(problems().find("the compressed data ends early"), std::string::npos) << problems();
  only(Kind::op);
}

// The names of CUDA's calls in preload's table are of the same kind here.
TEST_F(KinetoReader, LaunchesThatKinetoHasNoNameFor) {
  const auto call = [](int cbid) {
    return R"j({"ph":"X","cat":"cuda_runtime","name":"INVALID","pid":7,"tid":7,"ts":1,"dur":2,"args":{"cbid":)j" +
           std::to_string(cbid) + R"j(,"correlation":5}})j";
  };
  for (const int cbid : {505, 506, 507}) {
    const Process& p = read("[" + call(cbid) + "]");
    ASSERT_EQ(p.events.size(), 1u);
    EXPECT_EQ(trace_.shape(p.events[0]).kind, cbid < 507 ? Kind::launch : Kind::call);
  }
}

TEST(KinetoCallKinds, AgreeWithTheTable) {
#define GPUPROF_API(library, symbol, role) check(#library, #symbol, kind_of(ApiRole::role));
#define GPUPROF_API_AS(library, symbol, model, role) \
  check(#library, #symbol, kind_of(ApiRole::role));
#define GPUPROF_HAND(library, symbol)
#define GPUPROF_CALLBACK(library, symbol, role) check(#library, #symbol, kind_of(ApiRole::role));
  const auto check = [](std::string_view library, std::string_view name, Kind kind) {
    if (library != "cudart" && library != "driver") return;
    EXPECT_EQ(kineto::kind_of_call(name), kind) << name;
  };
#include "preload/apis.def"
  EXPECT_EQ(kineto::kind_of_call("hipLaunchKernel"), Kind::launch);
  EXPECT_EQ(kineto::kind_of_call("hipMemcpyWithStream"), Kind::copy);
  EXPECT_EQ(kineto::kind_of_call("hipDeviceSynchronize"), Kind::sync);
  EXPECT_EQ(kineto::kind_of_call("urEnqueueKernelLaunchWithArgsExp"), Kind::launch);
  EXPECT_EQ(kineto::kind_of_call("urEnqueueUSMMemcpy"), Kind::copy);
  EXPECT_EQ(kineto::kind_of_call("urEnqueueUSMFill"), Kind::set);
  EXPECT_EQ(kineto::kind_of_call("urQueueFinish"), Kind::sync);
  EXPECT_EQ(kineto::kind_of_call("urUSMDeviceAlloc"), Kind::alloc);
  EXPECT_EQ(kineto::kind_of_call("urUSMFree"), Kind::dealloc);
  for (const char* each :
       {"zeEventHostSynchronize", "zeFenceHostSynchronize", "urEventWait",
        "zeCommandListHostSynchronize", "zeCommandQueueSynchronize", "zeDeviceSynchronize"}) {
    EXPECT_EQ(kineto::kind_of_call(each), Kind::sync) << each;
  }
  EXPECT_EQ(kineto::kind_of_call("zeCommandListAppendMemoryCopy"), Kind::copy);
  EXPECT_EQ(kineto::kind_of_call("zeCommandListAppendMemoryFillWithParameters"), Kind::set);
  EXPECT_EQ(kineto::kind_of_call("zeCommandListAppendLaunchKernel"), Kind::launch);
  EXPECT_EQ(kineto::kind_of_call("zeMemAllocDevice"), Kind::alloc);
  EXPECT_EQ(kineto::kind_of_call("zeMemFree"), Kind::dealloc);
  EXPECT_EQ(kineto::kind_of_call("zeMemGetAllocProperties"), Kind::call);
  EXPECT_EQ(kineto::kind_of_call("zeEventQueryStatus"), Kind::call);
  EXPECT_EQ(kineto::kind_of_call("zeCommandListAppendBarrier"), Kind::call);
  EXPECT_EQ(kineto::kind_of_call("runFunction - job_prep_and_submit_for_execution"), Kind::launch);
}

}  // namespace
}  // namespace gpuprof
