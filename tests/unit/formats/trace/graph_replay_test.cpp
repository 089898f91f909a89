// SPDX-License-Identifier: Apache-2.0
// Nodes of a graph that was instantiated before CUPTI was on, and the calls that it replays.
#include "formats/trace/graph_replay.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/unit/support/dump_maker.h"

namespace gpuprof::test {
namespace {

constexpr uint64_t kExec = 0x7000;
constexpr uint64_t kFirstNode = 100;

uint64_t ticks_at(uint64_t us) { return 10'000'000 + us * kTicksPerUs; }

// A kernel node: what a captured call, or a record of the node, says of it.
struct Node {
  std::string kernel;
  uint32_t grid = 1;
  bool known = true;  // somebody saw the call
};

class GraphReplay : public testing::Test {
 protected:
  GraphReplay() { encoder_.begin(0, 1); }

  void add(const Record& record, uint32_t correlation) {
    Record numbered = record;
    numbered.correlation = correlation;
    ASSERT_TRUE(encoder_.add(numbered, 4242, "python"));
  }

  // A launch of the graph whose nodes run in the order given, with ids by position in `order`.
  void launch(uint64_t us, const std::vector<Node>& nodes, std::vector<uint64_t> order = {}) {
    const uint32_t correlation = ++correlation_;
    Record call =
        make_record(Kind::launch, ticks_at(us), ticks_at(us + 1), names_.api("cudaGraphLaunch"));
    call.launch.function = kExec;
    add(call, correlation);
    for (size_t i = 0; i < nodes.size(); ++i) {
      Record work =
          make_record(Kind::gpu_kernel, ticks_at(us + 2 + 2 * i), ticks_at(us + 3 + 2 * i));
      work.gpu_kernel.name = names_.intern(nodes[i].kernel);
      work.gpu_kernel.shape =
          names_.shape({{nodes[i].grid, 1, 1}, {128, 1, 1}, 0, 0, 0, 0, 0, 0, 0, 0});
      work.gpu_kernel.stream = 7, work.gpu_kernel.context = 1, work.gpu_kernel.graph = 1;
      work.gpu_kernel.graph_node = kFirstNode + (order.empty() ? i : order[i]);
      add(work, correlation);
    }
  }

  void captured(uint64_t us, const std::vector<Node>& nodes, bool complete = true) {
    dump::ReplayedGraph& graph = *graphs_.add_replayed();
    graph.set_exec(kExec), graph.set_since(ticks_at(us) >> 1), graph.set_complete(complete);
    for (const Node& node : nodes) {
      dump::ReplayedCall& call = *graph.add_call();
      call.set_kind(static_cast<uint32_t>(Kind::gpu_kernel));
      call.set_kernel(node.kernel);
      for (const uint32_t size : {node.grid, 1u, 1u, 128u, 1u, 1u}) call.add_size(size);
      ++calls_;
      if (!node.known) continue;
      call.mutable_node()->set_api("call " + std::to_string(calls_));
      call.mutable_node()->set_captured_time((ticks_at(0) >> 1) + static_cast<uint64_t>(calls_));
      call.mutable_node()->set_thread(4242);
    }
  }

  // The captured call of each node that is told, by the node's position.
  std::map<uint64_t, std::string> told() {
    ByteBuffer bytes;
    append(bytes, ChunkKind::header, make_header(1));
    append_events(bytes, encoder_);
    append(bytes, ChunkKind::graphs, graphs_);
    append_steps(bytes, {ticks_at(0), ticks_at(1000)}, 1, 1);
    append(bytes, ChunkKind::summary, make_summary(ticks_at(1000), 1, 1));
    const Trace trace = load(view(bytes));
    std::map<uint64_t, std::string> out;
    for (const auto& [id, node] : trace.processes.at(0).graph_nodes) {
      out[id - kFirstNode] = node.api;
    }
    return out;
  }

 private:
  MemoryNames names_;
  BatchEncoder encoder_{names_};
  dump::Graphs graphs_;
  uint32_t correlation_ = 0;
  int calls_ = 0;
};

using Told = std::map<uint64_t, std::string>;

TEST_F(GraphReplay, NodesAreCallsInOrder) {
  captured(0, {{"gemm"}, {"relu"}, {"gemm"}});
  launch(10, {{"gemm"}, {"relu"}, {"gemm"}});
  EXPECT_EQ(told(), (Told{{0, "call 1"}, {1, "call 2"}, {2, "call 3"}}));
}

TEST_F(GraphReplay, InAnotherOrderOnlyThoseThatLookLikeNoOther) {
  captured(0, {{"gemm"}, {"relu"}, {"gemm"}});
  launch(10, {{"gemm"}, {"relu"}, {"gemm"}}, {2, 0, 1});  // ids are not in the order of capture
  EXPECT_EQ(told(), (Told{{0, "call 2"}}));
}

TEST_F(GraphReplay, ShapesTellKernelsOfOneNameApart) {
  captured(0, {{"gemm", 4}, {"gemm", 8}});
  launch(10, {{"gemm", 4}, {"gemm", 8}}, {1, 0});
  EXPECT_EQ(told(), (Told{{0, "call 2"}, {1, "call 1"}}));
}

TEST_F(GraphReplay, NothingWhereACountDiffers) {
  captured(0, {{"gemm"}, {"relu"}});
  launch(10, {{"gemm"}, {"relu"}, {"softmax"}});
  EXPECT_EQ(told(), Told{});
}

TEST_F(GraphReplay, NothingOfAGraphWithOtherNodes) {
  captured(0, {{"gemm"}, {"relu"}}, false);
  launch(10, {{"gemm"}, {"relu"}});
  EXPECT_EQ(told(), Told{});
}

TEST_F(GraphReplay, ACallThatNobodySawIsNotTold) {
  captured(0, {{"gemm"}, {"relu", 1, false}});
  launch(10, {{"gemm"}, {"relu"}});
  EXPECT_EQ(told(), (Told{{0, "call 1"}}));
}

TEST_F(GraphReplay, AKernelWithoutANameAgreesInOrder) {
  captured(0, {{""}, {"relu"}});
  launch(10, {{"relu"}, {"gemm"}}, {1, 0});
  EXPECT_EQ(told(), (Told{{0, "call 1"}, {1, "call 2"}}));
}

TEST_F(GraphReplay, AKernelWithoutANameMayBeAny) {
  captured(0, {{""}, {"relu"}});
  launch(10, {{"relu"}, {"gemm"}});
  EXPECT_EQ(told(), Told{});
}

TEST_F(GraphReplay, AnUpdatedGraphReplaysOtherCalls) {
  captured(0, {{"gemm"}, {"relu"}});
  captured(50, {{"gemm"}, {"relu"}});
  launch(60, {{"gemm"}, {"relu"}});
  EXPECT_EQ(told(), (Told{{0, "call 3"}, {1, "call 4"}}));
}

TEST_F(GraphReplay, ANodeThatLaunchesTellDifferentlyIsNotTold) {
  captured(0, {{"gemm"}, {"relu"}});
  captured(50, {{"gemm"}, {"relu"}});
  launch(10, {{"gemm"}, {"relu"}});
  launch(60, {{"gemm"}, {"relu"}});
  EXPECT_EQ(told(), Told{});
}

TEST_F(GraphReplay, NothingBeforeTheGraphWasKnown) {
  captured(50, {{"gemm"}, {"relu"}});
  launch(10, {{"gemm"}, {"relu"}});
  EXPECT_EQ(told(), Told{});
}

}  // namespace
}  // namespace gpuprof::test
