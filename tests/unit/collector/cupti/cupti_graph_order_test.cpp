// SPDX-License-Identifier: Apache-2.0
// Which launch a node's record belongs to, told by order and times alone; what cannot be told is
// not.
#include "collector/cupti/cupti_graph_order.h"

#include <gtest/gtest.h>

namespace gpuprof {
namespace {

constexpr uint32_t kGraph = 3, kOther = 4;
constexpr uint64_t kNode = uint64_t{kGraph} << 32 | 1, kSecond = kNode + 1;
constexpr uint64_t kContext = 1000, kOtherContext = 2000, kStream = 1010, kSide = 1020;

// Recording since 10; the host has waited for the context since, from 20 to 30.
class Order : public GraphOrder {
 public:
  Order() {
    begin_recording(10);
    add_context_wait(kContext, 20, 30);
  }
};

// The call takes one unit.
void launch(GraphOrder& order, uint32_t graph, uint32_t correlation, uint64_t begin,
            uint64_t stream = kStream, uint64_t context = kContext) {
  const uint32_t number = order.add_launch(graph, {context, stream}, correlation, begin);
  order.end_launch(number, correlation, begin + 1, true);
}

TEST(GraphOrder, RecordsFollowTheLaunches) {
  Order order;
  launch(order, kGraph, 70, 100);
  launch(order, kGraph, 80, 110);  // issued before the first one runs
  EXPECT_EQ(order.launch_of(kGraph, kNode, 200), 70u);
  EXPECT_EQ(order.launch_of(kGraph, kSecond, 210), 70u);
  EXPECT_EQ(order.launch_of(kGraph, kNode, 300), 80u);
  EXPECT_EQ(order.launch_of(kGraph, kSecond, 310), 80u);
}

TEST(GraphOrder, NodesOfOneLaunchComeInAnyOrder) {
  Order order;
  launch(order, kGraph, 70, 100);
  launch(order, kGraph, 80, 110);
  EXPECT_EQ(order.launch_of(kGraph, kNode, 200), 70u);
  EXPECT_EQ(order.launch_of(kGraph, kNode, 300), 80u);
  EXPECT_EQ(order.launch_of(kGraph, kSecond, 210), 70u);
  EXPECT_EQ(order.launch_of(kGraph, kSecond, 310), 80u);
}

TEST(GraphOrder, GraphsCountForThemselves) {
  Order order;
  launch(order, kGraph, 70, 100);
  launch(order, kOther, 75, 105);
  EXPECT_EQ(order.launch_of(kOther, uint64_t{kOther} << 32 | 1, 200), 75u);
  EXPECT_EQ(order.launch_of(kGraph, kNode, 210), 70u);
}

TEST(GraphOrder, WithoutALaunchNothingIsTold) {
  Order order;
  EXPECT_EQ(order.launch_of(kGraph, kNode, 200), 0u);
  launch(order, kGraph, 70, 300);
  EXPECT_EQ(order.launch_of(kGraph, kNode, 250), 0u);  // before its launch
}

TEST(GraphOrder, ALaunchThatMayNotBeRecordedEndsTheCountUntilTheHostHasWaited) {
  GraphOrder order;
  launch(order, kGraph, 70, 100);
  order.begin_recording(105);
  launch(order, kGraph, 80, 110);
  EXPECT_EQ(order.launch_of(kGraph, kNode, 200), 0u);  // of 70 or of 80
  order.add_context_wait(kContext, 220, 230);
  launch(order, kGraph, 90, 240);
  EXPECT_EQ(order.launch_of(kGraph, kNode, 250), 90u);
  EXPECT_EQ(order.launch_of(kGraph, kSecond, 225), 0u);  // of before the wait's end
  EXPECT_EQ(order.launch_of(kGraph, kSecond, 255), 90u);
}

TEST(GraphOrder, ALaunchDuringTheWaitLeavesItOpen) {
  GraphOrder order;
  launch(order, kGraph, 70, 100);
  order.begin_recording(105);
  order.add_context_wait(kContext, 220, 230);
  launch(order, kGraph, 80, 225);  // another thread's
  EXPECT_EQ(order.launch_of(kGraph, kNode, 260), 0u);
}

TEST(GraphOrder, AMissingRecordShowsAtTheNextWait) {
  Order order;
  launch(order, kGraph, 70, 100);  // its record does not come
  order.add_context_wait(kContext, 200, 210);
  launch(order, kGraph, 80, 220);
  EXPECT_EQ(order.launch_of(kGraph, kNode, 230), 80u);
}

TEST(GraphOrder, AfterALossNothingIsToldUntilTheHostHasWaited) {
  Order order;
  launch(order, kGraph, 70, 100);
  order.lose_count(155);
  EXPECT_EQ(order.launch_of(kGraph, kNode, 150), 0u);
  order.add_context_wait(kContext, 160, 170);
  launch(order, kGraph, 80, 180);
  EXPECT_EQ(order.launch_of(kGraph, kNode, 190), 80u);
}

TEST(GraphOrder, ANodeThatRunsTwiceIsNoticed) {
  Order order;
  launch(order, kGraph, 70, 100);
  EXPECT_EQ(order.launch_of(kGraph, kNode, 110), 70u);
  EXPECT_EQ(order.launch_of(kGraph, kNode, 120), 0u);
  launch(order, kGraph, 80, 130);
  EXPECT_EQ(order.launch_of(kGraph, kSecond, 140), 0u);  // not sure any more
}

TEST(GraphOrder, AWaitThatBeganBeforeALossWasKnownTellsNothing) {
  Order order;
  launch(order, kGraph, 70, 100);
  order.add_context_wait(kContext, 160, 170);
  launch(order, kGraph, 80, 180);
  launch(order, kGraph, 85, 182);
  order.lose_count(190);  // the record of 70, or that of 80
  EXPECT_EQ(order.launch_of(kGraph, kNode, 185), 0u);
  EXPECT_EQ(order.launch_of(kGraph, kNode, 188), 0u);
  order.add_context_wait(kContext, 200, 210);
  launch(order, kGraph, 90, 220);
  EXPECT_EQ(order.launch_of(kGraph, kNode, 230), 90u);
}

TEST(GraphOrder, ExcludedGraphsAreNotTold) {
  Order order;
  launch(order, kGraph, 70, 100);
  order.exclude(kGraph);
  EXPECT_EQ(order.launch_of(kGraph, kNode, 150), 0u);
}

TEST(GraphOrder, ALaunchOfWhichNothingIsKnownBeforeItIsNotTold) {
  GraphOrder order;
  order.begin_recording(10);
  launch(order, kGraph, 70, 100);  // behind one that nobody saw, perhaps
  EXPECT_EQ(order.launch_of(kGraph, kNode, 150), 0u);
}

TEST(GraphOrder, AWaitForTheStreamIsEnough) {
  GraphOrder order;
  order.begin_recording(10);
  launch(order, kGraph, 70, 100);
  order.add_stream_wait(kStream, 110, 160);
  launch(order, kGraph, 80, 170);
  launch(order, kGraph, 90, 175);
  EXPECT_EQ(order.launch_of(kGraph, kNode, 150), 0u);
  EXPECT_EQ(order.launch_of(kGraph, kNode, 180), 80u);
  EXPECT_EQ(order.launch_of(kGraph, kNode, 190), 90u);
}

TEST(GraphOrder, AWaitForAnEventBehindItIsEnough) {
  GraphOrder order;
  order.begin_recording(10);
  launch(order, kGraph, 70, 100);
  order.add_event(5, {kStream, 110});
  launch(order, kGraph, 80, 120);  // behind the event
  const GraphOrder::EventPlace place = order.event(5);
  order.add_stream_wait(place.stream, place.time, 160);
  launch(order, kGraph, 90, 170);
  EXPECT_EQ(order.launch_of(kGraph, kNode, 165), 0u);  // of 80
  EXPECT_EQ(order.launch_of(kGraph, kNode, 180), 0u);  // of 80 or of 90
  order.add_event(5, {0, 0});
  EXPECT_EQ(order.event(5).stream, 0u);
}

TEST(GraphOrder, AWaitForAnotherStreamOrContextTellsNothing) {
  GraphOrder order;
  order.begin_recording(10);
  launch(order, kGraph, 70, 100);
  order.add_stream_wait(kSide, 110, 160);
  order.add_context_wait(kOtherContext, 110, 160);
  launch(order, kGraph, 80, 170);
  EXPECT_EQ(order.launch_of(kGraph, kNode, 180), 0u);
}

TEST(GraphOrder, WhatIsOverIsWhatWasLaunchedLast) {
  GraphOrder order;
  order.begin_recording(10);
  launch(order, kGraph, 70, 100);
  launch(order, kGraph, 80, 110, kSide);
  order.add_stream_wait(kStream, 120, 160);  // 80 may run yet
  launch(order, kGraph, 90, 170);
  EXPECT_EQ(order.launch_of(kGraph, kNode, 180), 0u);
  order.add_stream_wait(kStream, 190, 200);  // 80 was before 90
  launch(order, kGraph, 95, 210, kSide);
  EXPECT_EQ(order.launch_of(kGraph, kNode, 220), 95u);
}

TEST(GraphOrder, ALaunchThatHasNotReturnedIsNotWaitedFor) {
  GraphOrder order;
  order.begin_recording(10);
  const uint32_t number = order.add_launch(kGraph, {kContext, kStream}, 70, 100);
  order.add_stream_wait(kStream, 110, 120);  // another thread's
  order.end_launch(number, 70, 115, true);
  launch(order, kGraph, 80, 130);
  EXPECT_EQ(order.launch_of(kGraph, kNode, 140), 0u);
}

TEST(GraphOrder, AStreamOfTheSameHandleIsAnother) {
  GraphOrder order;
  order.begin_recording(10);
  launch(order, kGraph, 70, 100);
  order.end_stream(kStream);
  order.add_stream_wait(kStream, 110, 120);
  launch(order, kGraph, 80, 130);
  EXPECT_EQ(order.launch_of(kGraph, kNode, 140), 0u);
}

TEST(GraphOrder, ALaunchThatFailedEndsTheCount) {
  Order order;
  const uint32_t number = order.add_launch(kGraph, {kContext, kStream}, 70, 100);
  order.end_launch(number, 70, 101, false);
  launch(order, kGraph, 80, 110);
  EXPECT_EQ(order.launch_of(kGraph, kNode, 120), 0u);
}

TEST(GraphOrder, ALateRecordDoesNotCountTwice) {
  GraphOrder order;
  order.begin_recording(10);
  launch(order, kGraph, 70, 100);
  order.add_stream_wait(kStream, 110, 160);
  launch(order, kGraph, 80, 170);
  launch(order, kGraph, 90, 175);
  EXPECT_EQ(order.launch_of(kGraph, kNode, 180), 80u);
  EXPECT_EQ(order.launch_of(kGraph, kSecond, 150), 0u);  // of 70
  EXPECT_EQ(order.launch_of(kGraph, kNode, 190), 90u);
  EXPECT_EQ(order.launch_of(kGraph, kNode, 200), 0u);  // one too many: nothing is sure
  EXPECT_EQ(order.launch_of(kGraph, kSecond, 210), 0u);
}

TEST(GraphOrder, WaitsCountFromTheBeginOfRecording) {
  GraphOrder order;
  order.begin_recording(100);
  EXPECT_FALSE(order.waited());
  order.add_context_wait(kContext, 90, 110);  // began before
  EXPECT_FALSE(order.waited());
  order.add_stream_wait(kStream, 120, 130);  // for no launch that is known
  EXPECT_FALSE(order.waited());
  launch(order, kGraph, 70, 140);
  order.add_stream_wait(kStream, 150, 160);
  EXPECT_TRUE(order.waited());
}

TEST(GraphOrder, AFirstLaunchBesideTheWaitOfAnotherThreadIsTold) {
  Order order;
  order.add_context_wait(kContext, 90, 102);  // over as the launch had begun
  launch(order, kGraph, 70, 100);
  EXPECT_EQ(order.launch_of(kGraph, kNode, 150), 70u);
}

TEST(GraphOrder, ALaunchOfBeforeTheAttachIsToldAsItEnds) {
  Order order;
  const uint32_t number = order.add_launch(kGraph, {kContext, kStream}, 60, 0);
  order.end_launch(number, 60, 100, true);
  EXPECT_FALSE(order.counts_all());  // whether it has records, and which, is not known
  EXPECT_EQ(order.launch_of(kGraph, kNode, 90), 0u);
  order.add_context_wait(kContext, 110, 120);
  EXPECT_TRUE(order.counts_all());
  launch(order, kGraph, 70, 130);
  EXPECT_EQ(order.launch_of(kGraph, kNode, 140), 70u);
}

TEST(GraphOrder, AllCountOnceTheHostHasWaitedForEach) {
  GraphOrder order;
  order.begin_recording(10);
  EXPECT_TRUE(order.counts_all());  // no launch: the wait for the context tells
  launch(order, kGraph, 70, 100);
  launch(order, kOther, 80, 110, kSide);
  EXPECT_FALSE(order.counts_all());
  order.add_stream_wait(kStream, 120, 130);
  EXPECT_FALSE(order.counts_all());
  launch(order, kGraph, 75, 140);  // the one before was over
  order.add_stream_wait(kSide, 150, 160);
  EXPECT_TRUE(order.counts_all());
  launch(order, kOther, 85, 170, kSide);
  EXPECT_TRUE(order.counts_all());
  order.lose_count(180);
  EXPECT_FALSE(order.counts_all());
  order.add_context_wait(kContext, 190, 200);
  EXPECT_TRUE(order.counts_all());
}

TEST(GraphOrder, WhatCountsFromItsFirstLaunchNeedsNoWait) {
  Order order;
  launch(order, kGraph, 70, 100);
  EXPECT_TRUE(order.counts_all());
  launch(order, kOther, 80, 25);  // before that wait was over
  EXPECT_FALSE(order.counts_all());
  order.exclude(kOther);
  EXPECT_TRUE(order.counts_all());
}

}  // namespace
}  // namespace gpuprof
