// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/graphs.h"

#include <gtest/gtest.h>

#include "collector/sources/replayed_graphs.h"
#include "formats/core/record.h"

namespace gpuprof {
namespace {

constexpr uint64_t kExec = 0x7001, kOther = 0x7002;

NodeRecords records_of(uint64_t exec) {
  uint32_t nodes = 0;
  return node_records_of(exec, nodes);
}

// CUPTI tells of a graph while a window is open. What happens to it later only hooks see.
void instantiate_in_window(uint64_t exec) {
  cupti_tells_of_graphs(true);
  graph_exec_created(exec, {3, 3, 0});
  cupti_tells_of_graphs(false);
}

TEST(GraphsTest, AGraphThatIsDestroyedBetweenWindowsIsKnownNoMore) {
  instantiate_in_window(kExec);
  instantiate_in_window(kOther);
  EXPECT_EQ(records_of(kExec), NodeRecords::some);
  graph_destroyed(kExec);
  EXPECT_EQ(records_of(kExec), NodeRecords::likely);
  EXPECT_EQ(records_of(kOther), NodeRecords::some);
  graph_destroyed(kOther);
}

// The driver destroys graphs with their context, and no hook sees that.
TEST(GraphsTest, AHandleThatIsUsedAgainBetweenWindowsIsAnotherGraph) {
  instantiate_in_window(kExec);
  graph_instantiated(kExec, 0);
  EXPECT_EQ(records_of(kExec), NodeRecords::likely);
  graph_destroyed(kExec);
}

// CUPTI tells itself; the hook's call may come after another graph has got the handle.
TEST(GraphsTest, InAWindowCuptisWordCounts) {
  cupti_tells_of_graphs(true);
  graph_exec_created(kExec, {3, 3, 0});
  graph_destroyed(kExec);
  EXPECT_EQ(records_of(kExec), NodeRecords::some);
  graph_exec_destroyed(kExec);
  EXPECT_EQ(records_of(kExec), NodeRecords::likely);
  cupti_tells_of_graphs(false);
}

// A launch that CUPTI tells of: it makes the node `node`.
void launch_makes(uint64_t node, uint64_t graph) {
  Record record{};
  record.kind = Kind::launch;
  forget_created_nodes();
  note_created_node(node, graph);
  note_created_call(record, 0);
}

bool has_call(uint64_t node) {
  CapturedCall call{};
  return captured_call_of(node, call);
}

// A graph's nodes are gone with it, and cudaGraphAddKernelNode makes one at the same place.
TEST(GraphsTest, AHandleThatIsUsedAgainIsAnotherNode) {
  constexpr uint64_t kNode = 0x9001, kCopy = 0x9002;
  launch_makes(kNode, 1);
  EXPECT_TRUE(has_call(kNode));
  graph_node_copied(kNode, kCopy);
  EXPECT_TRUE(has_call(kCopy));
  note_created_node(kNode, 2);
  EXPECT_FALSE(has_call(kNode));
  graph_node_copied(kNode, kCopy);
  EXPECT_FALSE(has_call(kCopy));
  launch_makes(kNode, 3);
  EXPECT_TRUE(has_call(kNode));
}

// The table of handles is made anew as it grows.
TEST(GraphsTest, AForgottenHandleHasNoOlderCallEither) {
  constexpr uint64_t kNode = 0xa001;
  launch_makes(kNode, 1);
  Record record{};
  record.kind = Kind::launch;
  note_created_call(record, 0);  // a second one of this node, as of a later capture
  EXPECT_TRUE(has_call(kNode));
  note_created_node(kNode, 3);
  for (uint64_t other = 0; other < 3000; ++other) launch_makes(0xb0000 + other, 4);
  EXPECT_FALSE(has_call(kNode));
}

}  // namespace
}  // namespace gpuprof
