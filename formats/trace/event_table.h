// SPDX-License-Identifier: Apache-2.0
// The events of one process, packed: 18 bytes each if ordinary (durations and gaps of seconds,
// 65,536 shapes). Ten million fit beside everything else in 256 MB.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

namespace gpuprof {

enum class ShapeIndex : uint32_t {};
enum class EventIndex : uint32_t { none = 0xffffffff };  // in Process::events

template <typename Index>
constexpr uint32_t number(Index index) {
  return static_cast<uint32_t>(index);
}

// One event, as a value: changing it does not change the table.
struct Event {
  int64_t begin = 0, end = 0;  // ns, end >= begin
  EventIndex index = EventIndex::none;
  ShapeIndex shape{};
  uint32_t correlation = 0;  // 0: none
  uint32_t extra = 0;        // in Process::extras; entry 0 is all zero
  // Host event: the first GPU event it caused. GPU event: the host event that caused it.
  EventIndex partner = EventIndex::none;
  // GPU event: the next one of the same host event (graphs have many), in order of begin.
  EventIndex next_sibling = EventIndex::none;
};

// Memory for free(), in huge pages where that pays. Throws where there is none.
void* allocate_column(size_t bytes);

// A fixed number of items, not initialised: memory is there once it is written.
template <typename T>
class Column {
 public:
  Column() = default;
  explicit Column(size_t count) : data_(static_cast<T*>(allocate_column(count * sizeof(T)))) {}
  Column(Column&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  Column& operator=(Column&& other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }
  ~Column() { std::free(data_); }
  explicit operator bool() const { return data_ != nullptr; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }

 private:
  T* data_ = nullptr;
};

// The order of a lane: longer first where they begin together.
template <typename A, typename B>
bool is_earlier(const A& a, const B& b) {
  return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
}

// Reading is thread-safe while nothing is written; Writers of different parts may run in parallel.
class EventTable {
 public:
  class Iterator;
  class Range;
  class Writer;

  EventTable() = default;
  // `count` events, whose shapes are below `shape_count`; to be filled by Writers.
  EventTable(size_t count, size_t shape_count);
  EventTable(EventTable&& other) noexcept { *this = std::move(other); }
  EventTable& operator=(EventTable&& other) noexcept;

  size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  Event operator[](size_t i) const;
  Event at(size_t i) const {
    if (i >= count_) throw std::out_of_range("EventTable");
    return (*this)[i];
  }
  Iterator begin() const;
  Iterator end() const;
  Range range(uint32_t first, uint32_t count) const;

  // Single columns.
  int64_t begin_of(size_t i) const {
    const int32_t offset = begin_[i];
    return offset == kFar ? far_begin(i) : blocks_[i / kBlock].base + offset;
  }
  int64_t end_of(size_t i) const {
    return begin_of(i) + (duration_[i] == kLong ? long_duration(i) : duration_[i]);
  }
  ShapeIndex shape_of(size_t i) const {
    return static_cast<ShapeIndex>(narrow_shape_ ? narrow_shape_[i] : wide_shape_[i]);
  }
  uint32_t correlation_of(size_t i) const { return correlation_[i]; }
  EventIndex partner_of(size_t i) const { return partner_[i]; }
  EventIndex next_sibling_of(size_t i) const { return sibling_ ? sibling_[i] : EventIndex::none; }
  uint32_t extra_of(size_t i) const {
    const Block& block = blocks_[i / kBlock];
    const uint64_t bit = uint64_t{1} << i % kBlock;
    if (!(block.has_extra & bit)) return 0;
    return extra_[block.first_extra +
                  static_cast<uint32_t>(std::popcount(block.has_extra & (bit - 1)))];
  }

  void set_partner(size_t i, EventIndex partner) { partner_[i] = partner; }
  void set_next_sibling(size_t i, EventIndex sibling);
  // Of an event that was written with an extra, or with room for one.
  void set_extra(size_t i, uint32_t extra);

  // Ends the filling: takes over what writers, in order of their parts, have kept to themselves.
  void finish(std::vector<Writer>& writers);

 private:
  static constexpr size_t kBlock = 64;
  static constexpr int32_t kFar = std::numeric_limits<int32_t>::min();
  static constexpr uint32_t kLong = 0xffffffff;

  struct Block {
    int64_t base;        // begin of the block's first event
    uint64_t has_extra;  // a bit for each
    uint32_t first_extra;
  };
  using Exceptions = std::vector<std::pair<uint32_t, int64_t>>;  // in order of event

  int64_t far_begin(size_t i) const { return look_up(far_begins_, i); }
  int64_t long_duration(size_t i) const { return look_up(long_durations_, i); }
  static int64_t look_up(const Exceptions& exceptions, size_t i);

  size_t count_ = 0;
  Column<Block> blocks_;
  Column<int32_t> begin_;  // from the base of the block; kFar: in far_begins_
  Column<uint32_t> duration_;
  Column<uint16_t> narrow_shape_;
  Column<uint32_t> wide_shape_;
  Column<uint32_t> correlation_;
  Column<EventIndex> partner_;
  Column<EventIndex> sibling_;
  std::vector<uint32_t> extra_;  // of the events that have one
  Exceptions far_begins_, long_durations_;
};

// Writes events one after the other, from a given place on. The first event of a block is the
// business of the writer before, where a part begins inside one.
class EventTable::Writer {
 public:
  Writer(EventTable& table, size_t first) : table_(&table), first_(first), at_(first) {}
  // Takes begin, end, shape, correlation and extra. `room_for_extra`: it can get one afterwards.
  void add(const Event& event, bool room_for_extra = false);
  size_t at() const { return at_; }

 private:
  friend class EventTable;
  EventTable* table_;
  size_t first_, at_;
  uint64_t head_extras_ = 0;  // bits in the block that another writer began
  std::vector<uint32_t> extra_;
  Exceptions far_begins_, long_durations_;
};

class EventTable::Iterator {
 public:
  using iterator_category = std::random_access_iterator_tag;
  using value_type = Event;
  using difference_type = std::ptrdiff_t;
  using reference = Event;
  struct Arrow {
    Event event;
    const Event* operator->() const { return &event; }
  };
  using pointer = Arrow;

  Iterator() = default;
  Iterator(const EventTable* table, size_t at) : table_(table), at_(at) {}
  Event operator*() const { return (*table_)[at_]; }
  Arrow operator->() const { return {**this}; }
  Event operator[](difference_type i) const { return (*table_)[at_ + static_cast<size_t>(i)]; }
  Iterator& operator++() {
    ++at_;
    return *this;
  }
  Iterator operator++(int) {
    Iterator old = *this;
    ++at_;
    return old;
  }
  Iterator& operator--() {
    --at_;
    return *this;
  }
  Iterator& operator+=(difference_type by) {
    at_ += static_cast<size_t>(by);
    return *this;
  }
  Iterator& operator-=(difference_type by) { return *this += -by; }
  friend Iterator operator+(Iterator a, difference_type by) { return a += by; }
  friend Iterator operator-(Iterator a, difference_type by) { return a += -by; }
  friend difference_type operator-(const Iterator& a, const Iterator& b) {
    return static_cast<difference_type>(a.at_) - static_cast<difference_type>(b.at_);
  }
  friend bool operator==(const Iterator& a, const Iterator& b) { return a.at_ == b.at_; }
  friend auto operator<=>(const Iterator& a, const Iterator& b) { return a.at_ <=> b.at_; }

 private:
  const EventTable* table_ = nullptr;
  size_t at_ = 0;
};

// Events that lie together.
class EventTable::Range {
 public:
  Range() = default;
  Range(const EventTable& table, size_t first, size_t count)
      : table_(&table), first_(first), count_(count) {}
  size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  Event operator[](size_t i) const { return (*table_)[first_ + i]; }
  Event front() const { return (*this)[0]; }
  Event back() const { return (*this)[count_ - 1]; }
  Iterator begin() const { return {table_, first_}; }
  Iterator end() const { return {table_, first_ + count_}; }

 private:
  const EventTable* table_ = nullptr;
  size_t first_ = 0, count_ = 0;
};

inline Event EventTable::operator[](size_t i) const {
  Event event;
  event.begin = begin_of(i);
  event.end = event.begin + (duration_[i] == kLong ? long_duration(i) : duration_[i]);
  event.index = static_cast<EventIndex>(i);
  event.shape = shape_of(i);
  event.correlation = correlation_[i];
  event.extra = extra_of(i);
  event.partner = partner_[i];
  event.next_sibling = next_sibling_of(i);
  return event;
}

inline EventTable::Iterator EventTable::begin() const { return {this, 0}; }
inline EventTable::Iterator EventTable::end() const { return {this, count_}; }
inline EventTable::Range EventTable::range(uint32_t first, uint32_t count) const {
  return {*this, first, count};
}

}  // namespace gpuprof
