// SPDX-License-Identifier: Apache-2.0
// Payloads by the schemas of two generations of NCCL, and by ones that say what cannot be.
#include "collector/sources/nvtx_payload.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace gpuprof {
namespace {

// NVTX_PAYLOAD_ENTRY_TYPE_...
constexpr uint64_t kInt = 5, kUint64 = 18, kSize = 22, kCstring = 75, kFirstOwn = 1 << 24;
constexpr uint64_t kAll = ~uint64_t{0};
// Schemas are kept for the life of the process: each test has its own numbers.
uint64_t g_next = kFirstOwn + 1000;

NvtxSchemaEntry entry(const char* name, uint64_t type, uint64_t offset = 0, uint64_t flags = 0) {
  return {flags, type, name, nullptr, 0, offset, nullptr, nullptr};
}

// Registers one and returns its number.
uint64_t registered(const std::vector<NvtxSchemaEntry>& entries, size_t static_size = 0,
                    uint64_t id = 0) {
  if (id == 0) id = g_next++;
  keep_nccl_schema(
      {kAll, nullptr, NvtxSchema::kStatic, 0, entries.data(), entries.size(), static_size, 0, id});
  return id;
}
uint64_t registered_enum(size_t size) {
  const uint64_t id = g_next++;
  keep_nccl_enum({kAll, nullptr, nullptr, 0, size, id});
  return id;
}

NcclArguments read(uint64_t id, const void* payload, size_t size) {
  const NvtxPayloadData data{id, size, payload};
  NcclArguments out{};
  read_nccl_payloads(&data, 1, out);
  return out;
}

struct Reduction {  // since NCCL 2.24
  uint64_t communicator;
  size_t bytes;
  int root, operation;
};
constexpr Reduction kReduction{0xfedcba9876543210, 4096, 3, 2};

TEST(NvtxPayload, OfToday) {
  const uint64_t operation = registered_enum(sizeof(int));
  const uint64_t id =
      registered({entry("NCCL communicator ID", kUint64), entry("Message size [bytes]", kSize, 8),
                  entry("Root", kInt, 16), entry("Reduction operation", operation, 20)},
                 sizeof(Reduction));
  const NcclArguments found = read(id, &kReduction, sizeof kReduction);
  EXPECT_EQ(found.at(NcclField::communicator), kReduction.communicator);
  EXPECT_EQ(found.at(NcclField::bytes), 4096u);
  EXPECT_EQ(found.at(NcclField::root), 3u);
  EXPECT_EQ(found.at(NcclField::operation), 2u);
  EXPECT_FALSE(found.has(NcclField::peer));
}

TEST(NvtxPayload, Of2_18WithoutCommunicatorAndOffsets) {
  struct {
    size_t bytes;
    int peer;
  } const message{64, -1};
  const uint64_t id = registered({entry("Bytes", kSize), entry("Peer rank", kInt)});
  const NcclArguments found = read(id, &message, sizeof message);
  EXPECT_FALSE(found.has(NcclField::communicator));
  EXPECT_EQ(found.at(NcclField::bytes), 64u);
  EXPECT_EQ(static_cast<int64_t>(found.at(NcclField::peer)), -1) << "its sign";
}

TEST(NvtxPayload, TwoGenerationsInOneProcess) {
  const uint64_t id = registered({entry("Message size [bytes]", kSize)});  // one of 8 bytes
  registered({entry("NCCL communicator ID", kUint64), entry("Message size [bytes]", kSize, 8)}, 16,
             id);
  const uint64_t old = 5, of_today[] = {77, 6};
  EXPECT_EQ(read(id, &old, 8).at(NcclField::bytes), 5u);
  EXPECT_EQ(read(id, of_today, 16).at(NcclField::bytes), 6u);
  EXPECT_EQ(read(id, of_today, 16).at(NcclField::communicator), 77u);
  // A third of the same size in which the fields are the other way round: nobody knows which it is.
  registered({entry("Message size [bytes]", kSize), entry("NCCL communicator ID", kUint64, 8)}, 16,
             id);
  EXPECT_EQ(read(id, of_today, 16).known, 0);
  EXPECT_EQ(read(id, &old, 8).at(NcclField::bytes), 5u);
}

TEST(NvtxPayload, TheSameAgainIsNoSecond) {
  const std::vector<NvtxSchemaEntry> entries{entry("Message size [bytes]", kSize)};
  const uint64_t id = registered(entries), bytes = 5;
  registered(entries, 0, id);
  EXPECT_EQ(read(id, &bytes, 8).at(NcclField::bytes), 5u);
}

TEST(NvtxPayload, OffsetsOutsideThePayload) {
  const uint64_t bytes[2] = {7, 8};
  for (const uint64_t offset :
       {uint64_t{9}, uint64_t{16}, uint64_t{4095}, uint64_t{1} << 32, kAll - 3}) {
    const uint64_t id = registered(
        {entry("NCCL communicator ID", kUint64), entry("Message size [bytes]", kSize, offset)},
        sizeof bytes);
    const NcclArguments found = read(id, bytes, sizeof bytes);
    EXPECT_FALSE(found.has(NcclField::bytes)) << offset;
    EXPECT_EQ(found.at(NcclField::communicator), 7u) << offset;
  }
}

TEST(NvtxPayload, PayloadsThatAreNoneOfTheSchema) {
  const uint64_t id = registered({entry("NCCL communicator ID", kUint64)}, 8), value = 9;
  EXPECT_EQ(read(id, &value, 8).at(NcclField::communicator), 9u);
  EXPECT_EQ(read(id, &value, 4).known, 0) << "shorter";
  EXPECT_EQ(read(id, &value, SIZE_MAX).known, 0) << "a size that the tool is to find out";
  EXPECT_EQ(read(id, nullptr, 8).known, 0);
  EXPECT_EQ(read(id + 100000, &value, 8).known, 0) << "not registered";
  NcclArguments out{};
  read_nccl_payloads(nullptr, 1, out);
  const NvtxPayloadData data{id, 8, &value};
  read_nccl_payloads(&data, SIZE_MAX, out);
  EXPECT_EQ(out.known, 0) << "a count that cannot be";
}

TEST(NvtxPayload, SchemasThatSayNothing) {
  const NvtxSchemaEntry entries[] = {entry("NCCL communicator ID", kUint64)};
  const uint64_t value = 9;
  const NvtxSchema right{kAll, nullptr, NvtxSchema::kStatic, 0, entries, 1, 8, 0, 0};
  const auto known = [&](auto change) {
    NvtxSchema schema = right;
    schema.id = g_next++;
    change(schema);
    keep_nccl_schema(schema);
    return read(schema.id, &value, 8).known != 0;
  };
  EXPECT_TRUE(known([](NvtxSchema&) {}));
  EXPECT_FALSE(known([](NvtxSchema& schema) { schema.entries = nullptr; }));
  EXPECT_FALSE(known([](NvtxSchema& schema) { schema.entry_count = SIZE_MAX; }));
  EXPECT_FALSE(known([](NvtxSchema& schema) { schema.entry_count = 0; }));
  EXPECT_FALSE(known([](NvtxSchema& schema) { schema.type = 2; }));  // laid out as its data say
  EXPECT_FALSE(known([](NvtxSchema& schema) { schema.fields = NvtxSchema::kType; }));
}

TEST(NvtxPayload, EntriesThatAreNoNumbers) {
  const uint64_t values[2] = {5, 6};
  const uint64_t text = registered({entry("Message size [bytes]", kCstring)}, 16);
  EXPECT_EQ(read(text, values, 16).known, 0);
  const uint64_t pointer = registered({entry("Message size [bytes]", kSize, 0, 1 << 1)}, 16);
  EXPECT_EQ(read(pointer, values, 16).known, 0);
  const uint64_t array = registered({entry("Message size [bytes]", kSize, 0, 1 << 4)}, 16);
  EXPECT_EQ(read(array, values, 16).known, 0);
  const uint64_t nameless = registered({entry(nullptr, kSize), entry("Bytes", kSize, 8)}, 16);
  EXPECT_EQ(read(nameless, values, 16).at(NcclField::bytes), 6u);
  // Behind an entry of unknown size nobody knows where one without an offset lies.
  const uint64_t behind = registered({entry("x", kCstring), entry("Bytes", kSize)}, 16);
  EXPECT_EQ(read(behind, values, 16).known, 0);
}

TEST(NvtxPayload, EnumerationsOfUnknownOrImpossibleSize) {
  const uint64_t value = 1;
  const uint64_t unknown = registered({entry("Reduction operation", kFirstOwn + 999)}, 8);
  EXPECT_EQ(read(unknown, &value, 8).known, 0);
  const uint64_t huge = registered({entry("Reduction operation", registered_enum(1 << 20))}, 8);
  EXPECT_EQ(read(huge, &value, 8).known, 0);
  const uint64_t empty = registered({entry("Reduction operation", registered_enum(0))}, 8);
  EXPECT_EQ(read(empty, &value, 8).known, 0);
}

// Last, since it fills the table.
TEST(NvtxPayloadFull, OneMoreThanThereIsRoomForIsNotKept) {
  const uint64_t value = 3;
  uint64_t last = 0;
  for (int i = 0; i < 1000; ++i) last = registered({entry("Bytes", kSize)});
  EXPECT_EQ(read(last, &value, 8).known, 0);
}

}  // namespace
}  // namespace gpuprof
