// SPDX-License-Identifier: Apache-2.0
#include "collector/python/line_table.h"

namespace gpuprof {
namespace {

// Pairs: so many bytes of instructions further, so many lines on (signed).
int line_of_lnotab(const uint8_t* table, size_t bytes, int line, int offset) {
  int address = 0;
  for (size_t i = 0; i + 1 < bytes; i += 2) {
    address += table[i];
    if (address > offset) break;
    line += static_cast<int8_t>(table[i + 1]);
  }
  return line;
}

// Pairs: a range of so many bytes, whose line is so many lines from that of the one before; -128:
// it has none.
int line_of_ranges(const uint8_t* table, size_t bytes, int line, int offset) {
  int end = 0;
  for (size_t i = 0; i + 1 < bytes; i += 2) {
    const auto step = static_cast<int8_t>(table[i + 1]);
    end += table[i];
    if (step != -128) line += step;
    if (end > offset) return step == -128 ? 0 : line;
  }
  return 0;
}

// Six bits a byte, the lowest first; bit 6 says that more follow.
class SixBits {
 public:
  SixBits(const uint8_t* at, const uint8_t* end) : at_(at), end_(end) {}
  int next() {
    unsigned value = 0;
    for (unsigned shift = 0; at_ != end_ && shift < 30; shift += 6) {
      const uint8_t byte = *at_++;
      value |= (byte & 63u) << shift;
      if (!(byte & 64)) break;
    }
    return static_cast<int>(value);
  }
  int next_signed() {
    const int value = next();
    return value & 1 ? -(value >> 1) : value >> 1;
  }

 private:
  const uint8_t* at_;
  const uint8_t* const end_;
};

// Entries: a byte with bit 7 set holds the form and the number of 2-byte units; columns, which
// other bytes hold, are of no interest.
int line_of_locations(const uint8_t* table, size_t bytes, int line, int offset) {
  constexpr unsigned kOneLine0 = 10, kOneLine2 = 12, kNoColumns = 13, kLong = 14, kNone = 15;
  const uint8_t* at = table;
  const uint8_t* const last = table + bytes;
  int end = 0;
  while (at != last) {
    const uint8_t head = *at++;
    const unsigned form = head >> 3 & 15;
    if (form == kNoColumns || form == kLong) {
      line += SixBits(at, last).next_signed();
    } else if (form >= kOneLine0 && form <= kOneLine2) {
      line += static_cast<int>(form - kOneLine0);
    }
    end += 2 * ((head & 7) + 1);
    if (end > offset) return form == kNone ? 0 : line;
    while (at != last && !(*at & 128)) ++at;
  }
  return 0;
}

}  // namespace

int line_at(LineTable kind, const uint8_t* table, size_t bytes, int first_line, int offset) {
  switch (kind) {
    case LineTable::lnotab: return line_of_lnotab(table, bytes, first_line, offset);
    case LineTable::ranges: return line_of_ranges(table, bytes, first_line, offset);
    case LineTable::locations: return line_of_locations(table, bytes, first_line, offset);
  }
  return 0;
}

}  // namespace gpuprof
