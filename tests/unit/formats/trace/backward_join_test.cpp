// SPDX-License-Identifier: Apache-2.0
// Autograd nodes and their forward operators, where several threads have the same sequence number.
#include "formats/trace/backward_join.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/unit/support/dump_maker.h"

namespace gpuprof::test {
namespace {

class BackwardPairs : public testing::Test {
 protected:
  BackwardPairs() { encoder_.begin(0, 0); }

  void op(uint32_t thread, uint64_t begin_us, uint64_t end_us, const std::string& name,
          uint64_t sequence, bool backward = false) {
    constexpr uint64_t kFirst = 10'000'000;
    Record r =
        make_record(Kind::op, kFirst + begin_us * kTicksPerUs, kFirst + end_us * kTicksPerUs);
    r.framework.name = names_.intern(name);
    r.framework.backward = backward;
    r.framework.sequence = sequence;
    ASSERT_TRUE(encoder_.add(r, thread, "python"));
  }
  void node(uint32_t thread, uint64_t begin_us, uint64_t end_us, const std::string& name,
            uint64_t sequence) {
    op(thread, begin_us, end_us, name, sequence, true);
  }

  // The forward operator of each node that has one, by their names.
  std::map<std::string, std::string> joined() {
    ByteBuffer bytes;
    append(bytes, ChunkKind::header, make_header());
    append_events(bytes, encoder_);
    const Trace trace = load(view(bytes));
    const Process& process = trace.processes.at(0);
    std::map<std::string, std::string> out;
    for (const ForwardBackward& pair : process.forward_backward) {
      out.emplace(trace.text(trace.shape_of(process, pair.backward).name),
                  trace.text(trace.shape_of(process, pair.forward).name));
    }
    return out;
  }

  MemoryNames names_;
  BatchEncoder encoder_{names_};
};

using Names = std::map<std::string, std::string>;

constexpr uint32_t kMain = 1, kAutograd = 2, kReplica = 3, kOtherReplica = 4;

TEST_F(BackwardPairs, NodesRunOnTheirOwnThread) {
  op(kMain, 0, 10, "outer A", 7);
  op(kMain, 2, 8, "A", 7);
  op(kMain, 20, 30, "B", 8);
  node(kAutograd, 100, 110, "B node", 8);
  node(kAutograd, 120, 130, "A node", 7);
  EXPECT_EQ(joined(), (Names{{"A node", "A"}, {"B node", "B"}}));
}

TEST_F(BackwardPairs, NodesRunOnTheThreadThatMadeThem) {
  op(kMain, 0, 10, "A", 7);
  node(kMain, 120, 130, "A node", 7);
  EXPECT_EQ(joined(), (Names{{"A node", "A"}}));
}

// use_reentrant=False: a node that needs its values runs its block again, with numbers of the
// autograd thread, which are those of other layers on the main thread.
TEST_F(BackwardPairs, WhatRanAgainForItsValuesMadeNoNode) {
  op(kMain, 0, 10, "A", 7);
  op(kMain, 20, 30, "B", 8);
  node(kAutograd, 100, 150, "B node", 8);
  op(kAutograd, 110, 120, "B again", 7);
  node(kAutograd, 200, 250, "A node", 7);
  op(kAutograd, 210, 220, "A again", 8);
  EXPECT_EQ(joined(), (Names{{"A node", "A"}, {"B node", "B"}}));
}

// use_reentrant=True: the checkpoint's node runs the block again, and then its backward pass.
TEST_F(BackwardPairs, WhatRanAgainMadeTheNodesBesideIt) {
  op(kMain, 0, 10, "other", 3);
  op(kMain, 20, 30, "checkpoint", 8);
  node(kAutograd, 100, 200, "checkpoint node", 8);
  op(kAutograd, 110, 120, "A again", 3);
  node(kAutograd, 150, 160, "A node", 3);
  node(kAutograd, 300, 310, "other node", 3);
  EXPECT_EQ(
      joined(),
      (Names{{"A node", "A again"}, {"checkpoint node", "checkpoint"}, {"other node", "other"}}));
}

TEST_F(BackwardPairs, OfReplicasItIsNotKnown) {
  op(kReplica, 0, 10, "A of 0", 1);
  op(kOtherReplica, 0, 10, "A of 1", 1);
  op(kMain, 20, 30, "loss", 9);
  node(kAutograd, 90, 99, "loss node", 9);
  node(kAutograd, 100, 110, "A node", 1);
  EXPECT_EQ(joined(), (Names{{"loss node", "loss"}}));
}

TEST_F(BackwardPairs, AThreadOfEachStepBeginsAnew) {
  op(kReplica, 0, 10, "A of step 0", 1);
  node(kAutograd, 100, 110, "A node of step 0", 1);
  op(kOtherReplica, 200, 210, "A of step 1", 1);
  node(kAutograd, 300, 310, "A node of step 1", 1);
  EXPECT_EQ(joined(),
            (Names{{"A node of step 0", "A of step 0"}, {"A node of step 1", "A of step 1"}}));
}

TEST_F(BackwardPairs, OperatorsOfTheOwnThreadOutsideNodesAndOfAnotherAreNotTold) {
  op(kMain, 0, 10, "A of main", 1);
  op(kAutograd, 0, 10, "A of a trainer", 1);
  node(kAutograd, 100, 110, "A node", 1);
  EXPECT_EQ(joined(), (Names{}));
}

}  // namespace
}  // namespace gpuprof::test
