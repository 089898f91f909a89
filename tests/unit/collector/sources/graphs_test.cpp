// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/graphs.h"

#include <gtest/gtest.h>

#include "collector/sources/replayed_graphs.h"

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

}  // namespace
}  // namespace gpuprof
