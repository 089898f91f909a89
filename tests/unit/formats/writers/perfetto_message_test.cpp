// SPDX-License-Identifier: Apache-2.0
#include "formats/writers/perfetto/perfetto_message.h"

#include <gtest/gtest.h>

namespace gpuprof::perfetto {
namespace {

std::string length(size_t value) {
  uint8_t bytes[kMaxVarintBytes];
  return {reinterpret_cast<char*>(bytes), static_cast<size_t>(put_varint(bytes, value) - bytes)};
}

// Lengths of one, two and three bytes, of a field within another, over what stood there before.
TEST(Message, LengthsGetTheRoomThatTheyNeed) {
  for (const size_t size : {0u, 1u, 125u, 126u, 127u, 128u, 16379u, 16384u, 70000u}) {
    const std::string text(size, 'x');
    Message message(std::string(40, 'o'));
    message.append("ab");
    const size_t outer = message.open(1 << 3 | 2);
    const size_t inner = message.open(300 << 3 | 2);
    message.append(text);
    message.close(inner);
    message.close(outer);
    message.append("z");
    const std::string body = length(300 << 3 | 2) + length(size) + text;
    const std::string want = "ab" + length(1 << 3 | 2) + length(body.size()) + body + "z";
    EXPECT_TRUE(message.text() == want) << size;
    EXPECT_EQ(message.take().substr(0, message.size()), want) << size;
  }
}

}  // namespace
}  // namespace gpuprof::perfetto
