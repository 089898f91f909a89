// SPDX-License-Identifier: Apache-2.0
// Communicators that are known by NCCL's hash, which all ranks have alike.
#include "collector/record/communicators.h"

#include <gtest/gtest.h>

#include "formats/core/byte_buffer.h"
#include "formats/core/wire.h"

namespace gpuprof {
namespace {

TEST(Communicators, AHashThatSaysNothingHasNoHandle) {
  EXPECT_EQ(handle_of_hash(0), nullptr);
  EXPECT_EQ(handle_of_hash(1), nullptr) << "stands for a row that is free again";
  EXPECT_NE(handle_of_hash(2), nullptr);
}

TEST(Communicators, OneRankOfAProcessIsNotShared) {
  const void* const handle = handle_of_hash(0x1000);
  register_rank_of(handle, {4, 3});
  register_rank_of(handle, {4, 3});  // as after one that was not destroyed
  EXPECT_FALSE(is_shared_communicator(handle));
  uint32_t sequence = 0;
  const CommunicatorPlace place = note_collective(handle, &sequence);
  EXPECT_EQ(place.rank_count, 4);
  EXPECT_EQ(place.rank, 3);
}

TEST(Communicators, SeveralRanksOfAProcessShareIt) {
  const void* const handle = handle_of_hash(0x2000);
  EXPECT_FALSE(is_shared_communicator(handle)) << "never seen";
  register_rank_of(handle, {4, 0});
  register_rank_of(handle, {4, 1});
  EXPECT_TRUE(is_shared_communicator(handle));
}

TEST(Communicators, ARowIsNotSharedOnceItIsUsedAnew) {
  const void* const handle = handle_of_hash(0x3000);
  share_communicator(handle);
  EXPECT_TRUE(is_shared_communicator(handle));
  forget_communicator(handle);
  EXPECT_FALSE(is_shared_communicator(handle));
  register_rank_of(handle, {2, 1});
  EXPECT_FALSE(is_shared_communicator(handle));
}

// Its address is often that of the one that was destroyed before.
TEST(Communicators, OneThatIsGoneIsToldBesideTheNextOfItsAddress) {
  const auto rows = [] {
    ByteBuffer bytes;
    WireWriter out(bytes);
    encode_communicators(out, 1, 0);
    return bytes.size();
  };
  const size_t before = rows();
  const void* const handle = handle_of_hash(0x4000);
  identify_communicator(handle, 0x1111);
  const size_t one = rows();
  EXPECT_GT(one, before);
  forget_communicator(handle);
  identify_communicator(handle, 0x2222);
  EXPECT_GE(rows(), one + (one - before)) << "both";
}

}  // namespace
}  // namespace gpuprof
