// SPDX-License-Identifier: Apache-2.0
#include "formats/dump/events_decoder.h"

#include <array>
#include <limits>
#include <string>

#include "formats/core/columns.h"
#include "formats/io/varints.h"

namespace gpuprof {
namespace {

enum LaneField : uint32_t {
  kShape = 7,
  kBegin,
  kDuration,
  kCorrelation,
  kBytes,
  kAddress,
  kAddress2,
  kValue,
  kStack
};
constexpr uint32_t kFirstColumn = kShape, kLastColumn = kStack;
constexpr uint32_t kLaneField = 3;  // of Events

// One field of a message; `text` is what lies in a field of wire type 2.
struct Field {
  uint32_t number = 0, type = 0;
  std::string_view text;
  std::string_view whole;  // with its tag
};

bool next_field(Varints& in, Field& field) {
  const uint8_t* const from = in.place();
  const uint64_t tag = in.next();
  field.number = static_cast<uint32_t>(tag >> 3);
  field.type = static_cast<uint32_t>(tag & 7);
  field.text = {};
  switch (field.type) {
    case 0: in.next(); break;
    case 1: in.take(8); break;
    case 2: field.text = in.take(in.next()); break;
    case 5: in.take(4); break;
    default: in.fail();
  }
  field.whole = {reinterpret_cast<const char*>(from), static_cast<size_t>(in.place() - from)};
  return in.ok();
}

// How many varints there are; -1: the last one is cut.
int64_t count_varints(std::string_view bytes) {
  if (bytes.empty()) return 0;
  if (static_cast<uint8_t>(bytes.back()) >= 0x80) return -1;
  int64_t count = 0;
  for (const char byte : bytes) count += static_cast<uint8_t>(byte) < 0x80;
  return count;
}

uint64_t add_capped(uint64_t a, uint64_t b) {
  const uint64_t sum = a + b;
  return sum < a ? std::numeric_limits<uint64_t>::max() : sum;
}

// A column of entries for the events whose kind has it, or of none at all.
class OptionalColumn {
 public:
  explicit OptionalColumn(std::string_view bytes) : in_(bytes), empty_(bytes.empty()) {}
  uint64_t next() {
    if (empty_) return 0;
    short_ = short_ || in_.at_end();
    return in_.next();
  }
  uint64_t next_delta() {
    if (empty_) return 0;
    short_ = short_ || in_.at_end();
    return last_ += static_cast<uint64_t>(in_.next_signed());
  }
  bool fits() const { return !short_ && in_.ok() && in_.at_end(); }

 private:
  Varints in_;
  bool empty_, short_ = false;
  uint64_t last_ = 0;
};

using Columns = std::array<std::string_view, kLastColumn + 1>;

// Splits a lane into its columns and the rest. A column that is not packed, or comes in pieces, is
// legal: it is written anew, into `packed`, by protobuf.
bool split_lane(std::string_view bytes, Columns& columns, dump::Lane& rest, std::string& packed) {
  std::string others;
  bool usual = true;
  Varints in(bytes);
  Field field;
  while (!in.at_end()) {
    if (!next_field(in, field)) return false;
    if (field.number < kFirstColumn || field.number > kLastColumn) {
      others += field.whole;
    } else if (field.type == 2 && columns[field.number].empty()) {
      columns[field.number] = field.text;
    } else {
      usual = false;
    }
  }
  if (usual) return rest.ParseFromString(others);
  if (!packed.empty()) return false;
  dump::Lane whole;
  if (!whole.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return false;
  packed = whole.SerializeAsString();
  columns = {};
  return split_lane(packed, columns, rest, packed);
}

struct ShapeLayout {
  uint8_t columns;  // of its kind
  Kind kind;
};

class LaneDecoder {
 public:
  LaneDecoder(const dump::Events& chunk, const std::vector<ShapeLayout>& layouts)
      : chunk_(chunk), layouts_(layouts) {}

  // False: the chunk cannot be parsed. `room`: how many events may follow.
  bool decode(std::string_view bytes, DecodedLane& out, uint64_t& room) const {
    Columns columns{};
    std::string packed;
    if (!split_lane(bytes, columns, out.lane, packed)) return false;
    std::array<int64_t, kLastColumn + 1> counts{};
    for (uint32_t i = kFirstColumn; i <= kLastColumn; ++i) {
      counts[i] = count_varints(columns[i]);
      if (counts[i] < 0) return false;
    }
    out.claimed = static_cast<uint64_t>(counts[kShape]);
    out.wrong = check(out.lane, counts);
    if (out.claimed > room) out.wrong = "has more events than a file of this size can hold";
    room -= std::min(room, out.claimed);
    if (!out.wrong) out.wrong = read(columns, counts, out);
    return true;
  }

 private:
  static const char* check(const dump::Lane& lane,
                           const std::array<int64_t, kLastColumn + 1>& counts) {
    if (lane.type() < dump::Lane::THREAD || lane.type() > dump::Lane::RANGES) {
      return "is of an unknown type";
    }
    const int64_t count = counts[kShape];
    const bool same = counts[kBegin] == count && counts[kDuration] == count &&
                      (counts[kCorrelation] == count || counts[kCorrelation] == 0) &&
                      (counts[kStack] == count || counts[kStack] == 0);
    return same ? nullptr : "has columns of different lengths";
  }

  const char* read(const Columns& columns, const std::array<int64_t, kLastColumn + 1>& counts,
                   DecodedLane& out) const {
    LanePart& part = out.part;
    const uint64_t count = out.claimed;
    Varints shapes(columns[kShape]), begins(columns[kBegin]), durations(columns[kDuration]);
    Varints correlations(columns[kCorrelation]), stacks(columns[kStack]);
    OptionalColumn bytes(columns[kBytes]), value(columns[kValue]);
    OptionalColumn address(columns[kAddress]), address2(columns[kAddress2]);
    const auto stack_count = static_cast<uint32_t>(chunk_.stack_depth_size());
    uint64_t end = chunk_.base_time();
    int64_t correlation = 0;
    part.reserve(count);
    part.extras.reserve(static_cast<size_t>(
        std::min(counts[kShape], std::max({counts[kBytes], counts[kAddress], counts[kAddress2],
                                           counts[kValue], counts[kStack]}))));
    for (uint64_t i = 0; i < count; ++i) {
      RawEvent event{};
      event.shape = static_cast<uint32_t>(shapes.next());
      if (event.shape >= layouts_.size()) return "names a shape that is not there";
      event.begin = end + static_cast<uint64_t>(begins.next_signed());
      event.end = end = add_capped(event.begin, durations.next());
      if (!columns[kCorrelation].empty()) {
        if (const int64_t step = correlations.next_signed()) {
          correlation = static_cast<int64_t>(static_cast<uint64_t>(correlation) +
                                             static_cast<uint64_t>(step > 0 ? step - 1 : step));
          event.correlation = static_cast<uint32_t>(correlation);
        }
      }
      EventExtra extra{};
      if (const uint8_t layout = layouts_[event.shape].columns) {
        if (layout & kColumnBytes) extra.bytes = bytes.next();
        if (layout & kColumnAddress) extra.address = address.next_delta();
        if (layout & kColumnAddress2) extra.address2 = address2.next_delta();
        if (layout & kColumnValue) extra.value = value.next();
      }
      if (!columns[kStack].empty()) {
        const auto stack = static_cast<uint32_t>(stacks.next());
        if (stack > stack_count) return "names a stack that is not there";
        extra.stack = static_cast<StackIndex>(stack);
      }
      const auto stack = static_cast<uint32_t>(extra.stack);
      if (layouts_[event.shape].kind == Kind::sample) {
        if (stack == 0) return "has a sample without a stack";
        out.samples.push_back({event.begin, stack});
        continue;
      }
      if (layouts_[event.shape].kind == Kind::heap) {
        out.heap.push_back({event.begin, extra.address, extra.bytes, event.shape, stack});
        continue;
      }
      if ((extra.bytes | extra.address | extra.address2 | extra.value) ||
          extra.stack != StackIndex::none) {
        part.extras.push_back(extra);
        event.extra = static_cast<uint32_t>(part.extras.size());
      }
      part.add(event);
    }
    if (!shapes.ok() || !begins.ok() || !durations.ok() || !correlations.ok() || !stacks.ok() ||
        !bytes.fits() || !address.fits() || !address2.fits() || !value.fits()) {
      return "has a column of the wrong length";
    }
    return nullptr;
  }

  const dump::Events& chunk_;
  const std::vector<ShapeLayout>& layouts_;  // by shape
};

}  // namespace

void LanePart::reserve(size_t count) { events_.reserve(count); }

void LanePart::forget_events() {
  std::vector<Packed>().swap(events_);
  std::vector<uint64_t>().swap(wide_);
}

void LanePart::add(const RawEvent& event) {
  Packed packed{};
  const auto gap = static_cast<int64_t>(event.begin - (events_.empty() ? 0 : last_.end));
  packed.begin = gap > kFar && gap <= INT32_MAX ? static_cast<int32_t>(gap) : kFar;
  if (packed.begin == kFar) wide_.push_back(event.begin);
  const uint64_t duration = event.end - event.begin;
  packed.duration = duration < kLong ? static_cast<uint32_t>(duration) : kLong;
  if (packed.duration == kLong) wide_.push_back(duration);
  packed.shape = event.shape | (event.extra ? kHasExtra : 0);
  packed.correlation = event.correlation;
  if (events_.empty()) {
    first_ = event;
  } else if (is_earlier(event, last_)) {
    in_order_ = false;
  }
  last_ = event;
  events_.push_back(packed);
}

DecodedEvents decode_events(std::string_view body, uint64_t most_events) {
  DecodedEvents out;
  std::vector<std::string_view> lanes;
  std::string rest;
  Varints in(body);
  Field field;
  while (!in.at_end()) {
    if (!next_field(in, field)) return out;
    if (field.number == kLaneField && field.type == 2) {
      lanes.push_back(field.text);
    } else {
      rest += field.whole;
    }
  }
  if (!out.rest.ParseFromString(rest)) return out;
  std::vector<ShapeLayout> layouts;
  layouts.reserve(static_cast<size_t>(out.rest.shape_size()));
  for (const dump::Shape& shape : out.rest.shape()) {
    const auto kind = static_cast<Kind>(shape.kind() & 0xff);
    const KindLayout* const layout = layout_of(kind);
    const uint8_t kind_columns = layout ? layout->columns : 0;
    layouts.push_back({kind_columns, kind});
  }
  const LaneDecoder decoder(out.rest, layouts);
  out.lanes.resize(lanes.size());
  for (size_t i = 0; i < lanes.size(); ++i) {
    if (!decoder.decode(lanes[i], out.lanes[i], most_events)) return out;
  }
  out.readable = true;
  return out;
}

}  // namespace gpuprof
