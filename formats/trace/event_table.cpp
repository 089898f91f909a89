// SPDX-License-Identifier: Apache-2.0
#include "formats/trace/event_table.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace gpuprof {

void* allocate_column(size_t bytes) {
  constexpr size_t kHugePage = size_t{1} << 21;
  const bool large = bytes >= 4 * kHugePage;
  const size_t rounded = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  void* const data = large ? std::aligned_alloc(kHugePage, rounded) : std::malloc(bytes + 1);
  if (!data) throw std::bad_alloc();
  if (large) ::madvise(data, rounded, MADV_HUGEPAGE);
  return data;
}

EventTable::EventTable(size_t count, size_t shape_count)
    : count_(count),
      blocks_(count / kBlock + 1),
      begin_(count),
      duration_(count),
      correlation_(count),
      partner_(count) {
  if (shape_count <= size_t{1} << 16) {
    narrow_shape_ = Column<uint16_t>(count);
  } else {
    wide_shape_ = Column<uint32_t>(count);
  }
}

EventTable& EventTable::operator=(EventTable&& other) noexcept {
  std::swap(count_, other.count_);
  blocks_ = std::move(other.blocks_);
  begin_ = std::move(other.begin_);
  duration_ = std::move(other.duration_);
  narrow_shape_ = std::move(other.narrow_shape_);
  wide_shape_ = std::move(other.wide_shape_);
  correlation_ = std::move(other.correlation_);
  partner_ = std::move(other.partner_);
  sibling_ = std::move(other.sibling_);
  extra_.swap(other.extra_);
  far_begins_.swap(other.far_begins_);
  long_durations_.swap(other.long_durations_);
  return *this;
}

int64_t EventTable::look_up(const Exceptions& exceptions, size_t i) {
  const auto found =
      std::lower_bound(exceptions.begin(), exceptions.end(), static_cast<uint32_t>(i),
                       [](const auto& entry, uint32_t event) { return entry.first < event; });
  return found == exceptions.end() ? 0 : found->second;
}

void EventTable::set_next_sibling(size_t i, EventIndex sibling) {
  if (!sibling_) {
    sibling_ = Column<EventIndex>(count_);
    std::fill_n(&sibling_[0], count_, EventIndex::none);
  }
  sibling_[i] = sibling;
}

void EventTable::set_extra(size_t i, uint32_t extra) {
  const Block& block = blocks_[i / kBlock];
  const uint64_t bit = uint64_t{1} << i % kBlock;
  extra_.at(block.first_extra + static_cast<uint32_t>(std::popcount(block.has_extra & (bit - 1)))) =
      extra;
}

void EventTable::Writer::add(const Event& event, bool room_for_extra) {
  EventTable& table = *table_;
  const size_t i = at_++;
  const size_t in_block = i % kBlock;
  Block& block = table.blocks_[i / kBlock];
  const bool own_block = i - in_block >= first_;
  if (in_block == 0) block = {event.begin, 0, static_cast<uint32_t>(extra_.size())};
  const int64_t offset = own_block ? event.begin - block.base : kFar;
  if (offset > kFar && offset <= std::numeric_limits<int32_t>::max()) {
    table.begin_[i] = static_cast<int32_t>(offset);
  } else {
    table.begin_[i] = kFar;
    far_begins_.emplace_back(static_cast<uint32_t>(i), event.begin);
  }
  const int64_t duration = event.end - event.begin;
  if (duration < int64_t{kLong}) {
    table.duration_[i] = static_cast<uint32_t>(duration);
  } else {
    table.duration_[i] = kLong;
    long_durations_.emplace_back(static_cast<uint32_t>(i), duration);
  }
  if (table.narrow_shape_) {
    table.narrow_shape_[i] = static_cast<uint16_t>(event.shape);
  } else {
    table.wide_shape_[i] = number(event.shape);
  }
  table.correlation_[i] = event.correlation;
  table.partner_[i] = EventIndex::none;
  if (event.extra || room_for_extra) {
    (own_block ? block.has_extra : head_extras_) |= uint64_t{1} << in_block;
    extra_.push_back(event.extra);
  }
}

void EventTable::finish(std::vector<Writer>& writers) {
  const auto take = [](auto& all, auto& part) {
    if (all.empty()) return all.swap(part);
    all.insert(all.end(), part.begin(), part.end());
    std::remove_reference_t<decltype(part)>().swap(part);
  };
  for (Writer& writer : writers) {
    const auto before = static_cast<uint32_t>(extra_.size());
    if (writer.first_ % kBlock) blocks_[writer.first_ / kBlock].has_extra |= writer.head_extras_;
    for (size_t b = (writer.first_ + kBlock - 1) / kBlock; b * kBlock < writer.at_; ++b) {
      blocks_[b].first_extra += before;
    }
    take(extra_, writer.extra_);
    take(far_begins_, writer.far_begins_);
    take(long_durations_, writer.long_durations_);
  }
}

}  // namespace gpuprof
