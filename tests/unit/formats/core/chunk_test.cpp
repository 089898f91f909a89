// SPDX-License-Identifier: Apache-2.0
#include "formats/core/chunk.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>

#include "formats/core/crc32c.h"
#include "formats/core/wire.h"
#include "formats/gpuprof.pb.h"

namespace gpuprof {
namespace {

TEST(Crc32c, KnownValues) {  // RFC 3720, B.4
  EXPECT_EQ(crc32c("123456789", 9), 0xe3069283u);
  const std::string zeros(32, '\0'), ones(32, '\xff');
  EXPECT_EQ(crc32c(zeros.data(), 32), 0x8a9136aau);
  EXPECT_EQ(crc32c(ones.data(), 32), 0x62a8ab43u);
  EXPECT_EQ(crc32c("", 0), 0u);
}

TEST(Crc32c, GoesOnFromAPart) {
  std::string text(1000, '\0');
  std::mt19937 random(1);
  for (char& c : text) c = static_cast<char>(random());
  const uint32_t whole = crc32c(text.data(), text.size());
  for (size_t cut : {0, 1, 7, 8, 9, 500, 999, 1000}) {
    EXPECT_EQ(crc32c(text.data() + cut, text.size() - cut, crc32c(text.data(), cut)), whole);
  }
}

TEST(Chunk, IsWhatTheSchemaSays) {
  ByteBuffer file;
  const std::string text(1000, 'x');
  const auto* const body = reinterpret_cast<const uint8_t*>(text.data());
  ASSERT_TRUE(append_chunk(file, ChunkKind::steps, body, text.size(), 6));
  ASSERT_TRUE(append_chunk(file, ChunkKind::events, body, 10, 6));
  ASSERT_TRUE(append_chunk(file, ChunkKind::summary, nullptr, 0, 6));
  dump::Trace trace;
  ASSERT_TRUE(trace.ParseFromArray(file.data(), static_cast<int>(file.size())));
  ASSERT_EQ(trace.chunk_size(), 3);
  EXPECT_EQ(trace.chunk(0).kind(), dump::CHUNK_STEPS);
  EXPECT_EQ(trace.chunk(0).codec(), dump::CODEC_DEFLATE);
  EXPECT_EQ(trace.chunk(0).raw_size(), 1000u);
  EXPECT_LT(trace.chunk(0).body().size(), 100u);
  EXPECT_EQ(trace.chunk(1).codec(), dump::CODEC_NONE);
  EXPECT_EQ(trace.chunk(1).body(), text.substr(0, 10));
  EXPECT_EQ(trace.chunk(2).raw_size(), 0u);
  for (const dump::Chunk& chunk : trace.chunk()) {
    uint64_t magic = chunk.magic();
    EXPECT_EQ(std::memcmp(&magic, "GPRFCHK1", 8), 0);
    const std::string bytes = chunk.SerializeAsString();
    ASSERT_EQ(bytes.size(), 19 + chunk.size());
    EXPECT_EQ(chunk.crc32c(), crc32c(bytes.data() + 19, chunk.size()));
  }
}

TEST(Chunk, KeepsABodyThatDoesNotShrink) {
  std::mt19937 random(3);
  std::string noise(5000, '\0');
  for (char& c : noise) c = static_cast<char>(random());
  ByteBuffer file;
  ASSERT_TRUE(append_chunk(file, ChunkKind::events, reinterpret_cast<const uint8_t*>(noise.data()),
                           noise.size(), 9));
  dump::Trace trace;
  ASSERT_TRUE(trace.ParseFromArray(file.data(), static_cast<int>(file.size())));
  EXPECT_EQ(trace.chunk(0).codec(), dump::CODEC_NONE);
  EXPECT_EQ(trace.chunk(0).body(), noise);
}

TEST(Chunk, RefusesABodyThatReadersWouldRefuse) {
  ByteBuffer file;
  ASSERT_TRUE(file.push_back(1));
  const uint8_t byte = 0;
  EXPECT_FALSE(append_chunk(file, ChunkKind::events, &byte, size_t{kMaxBodyBytes} + 1, 0));
  EXPECT_EQ(file.size(), 1u);
}

TEST(Wire, NestedMessagesOfAnyLength) {
  for (const size_t size : {0, 1, 127, 128, 16383, 16384, 300000}) {
    ByteBuffer out;
    WireWriter wire(out);
    const size_t outer = wire.open(15);
    wire.uint(1, 7);
    const size_t inner = wire.open(2);
    wire.bytes(1, std::string(size, 'y'));
    wire.close(inner);
    wire.close(outer);
    ASSERT_TRUE(wire.ok());
    dump::Header header;  // field 15 is the clock; its field 1 the source
    ASSERT_TRUE(header.ParseFromArray(out.data(), static_cast<int>(out.size())));
    EXPECT_EQ(static_cast<int>(header.clock().source()), 7);
  }
}

TEST(Wire, VarintsRoundTrip) {
  for (int bit = 0; bit < 64; ++bit) {
    for (const uint64_t value : {uint64_t{1} << bit, (uint64_t{1} << bit) - 1}) {
      uint8_t bytes[kMaxVarintBytes];
      EXPECT_EQ(static_cast<size_t>(put_varint(bytes, value) - bytes), varint_size(value));
    }
  }
  EXPECT_EQ(zigzag(0), 0u);
  EXPECT_EQ(zigzag(-1), 1u);
  EXPECT_EQ(zigzag(1), 2u);
  EXPECT_EQ(zigzag(INT64_MIN), UINT64_MAX);
}

}  // namespace
}  // namespace gpuprof
