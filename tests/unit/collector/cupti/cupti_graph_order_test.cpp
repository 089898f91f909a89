// SPDX-License-Identifier: Apache-2.0
// Which launch a node's record belongs to, told by order and times alone; what cannot be told is not.
#include "collector/cupti/cupti_graph_order.h"

#include <gtest/gtest.h>

namespace gpuprof {
namespace {

constexpr uint32_t kGraph = 3, kOther = 4;
constexpr uint64_t kNode = uint64_t{kGraph} << 32 | 1, kSecond = kNode + 1;

TEST(GraphOrder, RecordsFollowTheLaunches) {
  GraphOrder order;
  order.add_launch(kGraph, 70, 100, true);
  order.add_launch(kGraph, 80, 110, true);  // issued before the first one runs
  EXPECT_EQ(order.launch_of(kGraph, kNode, 200), 70u);
  EXPECT_EQ(order.launch_of(kGraph, kSecond, 210), 70u);
  EXPECT_EQ(order.launch_of(kGraph, kNode, 300), 80u);
  EXPECT_EQ(order.launch_of(kGraph, kSecond, 310), 80u);
}

TEST(GraphOrder, NodesOfOneLaunchComeInAnyOrder) {
  GraphOrder order;
  order.add_launch(kGraph, 70, 100, true);
  order.add_launch(kGraph, 80, 110, true);
  EXPECT_EQ(order.launch_of(kGraph, kNode, 200), 70u);
  EXPECT_EQ(order.launch_of(kGraph, kNode, 300), 80u);
  EXPECT_EQ(order.launch_of(kGraph, kSecond, 210), 70u);
  EXPECT_EQ(order.launch_of(kGraph, kSecond, 310), 80u);
}

TEST(GraphOrder, GraphsCountForThemselves) {
  GraphOrder order;
  order.add_launch(kGraph, 70, 100, true);
  order.add_launch(kOther, 75, 105, true);
  EXPECT_EQ(order.launch_of(kOther, uint64_t{kOther} << 32 | 1, 200), 75u);
  EXPECT_EQ(order.launch_of(kGraph, kNode, 210), 70u);
}

TEST(GraphOrder, WithoutALaunchNothingIsTold) {
  GraphOrder order;
  EXPECT_EQ(order.launch_of(kGraph, kNode, 200), 0u);
  order.add_launch(kGraph, 70, 300, true);
  EXPECT_EQ(order.launch_of(kGraph, kNode, 250), 0u);  // before its launch
}

TEST(GraphOrder, ALaunchThatMayNotBeRecordedEndsTheCountUntilTheHostHasWaited) {
  GraphOrder order;
  order.add_launch(kGraph, 70, 100, false);
  order.add_launch(kGraph, 80, 110, true);
  EXPECT_EQ(order.launch_of(kGraph, kNode, 200), 0u);  // of 70 or of 80
  order.add_wait(220, 230);
  order.add_launch(kGraph, 90, 240, true);
  EXPECT_EQ(order.launch_of(kGraph, kNode, 250), 90u);
  EXPECT_EQ(order.launch_of(kGraph, kSecond, 225), 0u);  // of before the wait's end
  EXPECT_EQ(order.launch_of(kGraph, kSecond, 255), 90u);
}

TEST(GraphOrder, ALaunchDuringTheWaitLeavesItOpen) {
  GraphOrder order;
  order.add_launch(kGraph, 70, 100, false);
  order.add_wait(220, 230);
  order.add_launch(kGraph, 80, 225, true);  // another thread's
  EXPECT_EQ(order.launch_of(kGraph, kNode, 260), 0u);
}

TEST(GraphOrder, AMissingRecordShowsAtTheNextWait) {
  GraphOrder order;
  order.add_launch(kGraph, 70, 100, true);  // its record does not come
  order.add_wait(200, 210);
  order.add_launch(kGraph, 80, 220, true);
  EXPECT_EQ(order.launch_of(kGraph, kNode, 230), 80u);
}

TEST(GraphOrder, AfterALossNothingIsToldUntilTheHostHasWaited) {
  GraphOrder order;
  order.add_launch(kGraph, 70, 100, true);
  order.lose_count(155);
  EXPECT_EQ(order.launch_of(kGraph, kNode, 150), 0u);
  order.add_wait(160, 170);
  order.add_launch(kGraph, 80, 180, true);
  EXPECT_EQ(order.launch_of(kGraph, kNode, 190), 80u);
}

TEST(GraphOrder, ANodeThatRunsTwiceIsNoticed) {
  GraphOrder order;
  order.add_launch(kGraph, 70, 100, true);
  EXPECT_EQ(order.launch_of(kGraph, kNode, 110), 70u);
  EXPECT_EQ(order.launch_of(kGraph, kNode, 120), 0u);
  order.add_launch(kGraph, 80, 130, true);
  EXPECT_EQ(order.launch_of(kGraph, kSecond, 140), 0u);  // not sure any more
}

TEST(GraphOrder, AWaitThatBeganBeforeALossWasKnownTellsNothing) {
  GraphOrder order;
  order.add_launch(kGraph, 70, 100, true);
  order.add_wait(160, 170);
  order.add_launch(kGraph, 80, 180, true);
  order.add_launch(kGraph, 85, 182, true);
  order.lose_count(190);  // the record of 70, or that of 80
  EXPECT_EQ(order.launch_of(kGraph, kNode, 185), 0u);
  EXPECT_EQ(order.launch_of(kGraph, kNode, 188), 0u);
  order.add_wait(200, 210);
  order.add_launch(kGraph, 90, 220, true);
  EXPECT_EQ(order.launch_of(kGraph, kNode, 230), 90u);
}

TEST(GraphOrder, ExcludedGraphsAreNotTold) {
  GraphOrder order;
  order.add_launch(kGraph, 70, 100, true);
  order.exclude(kGraph);
  EXPECT_EQ(order.launch_of(kGraph, kNode, 150), 0u);
}

}  // namespace
}  // namespace gpuprof
