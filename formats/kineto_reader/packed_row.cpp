// SPDX-License-Identifier: Apache-2.0
#include "formats/kineto_reader/packed_row.h"

#include <algorithm>
#include <type_traits>

#include "formats/core/wire.h"

namespace gpuprof::kineto {
namespace {

constexpr size_t kFirstPiece = 256, kLargestPiece = 256 << 10;
constexpr size_t kLongestEvent = 7 * kMaxVarintBytes;

// An event is, as varints: what it has (in the low bits) and its begin from the one before; its
// duration; its shape; then what it has, each from the last event that had it.
constexpr uint64_t kHasCorrelation = 1, kHasExtra = 2, kHasExternalId = 4;
constexpr unsigned kFlagBits = 3;
// A begin that far from the one before has a varint of its own, and this in place of it.
constexpr uint64_t kFar = (uint64_t{1} << (64 - kFlagBits)) - 1;

}  // namespace

PackedRow::Piece& PackedRow::room_in(Run& run) {
  if (run.empty() || run.back().size - run.back().used < kLongestEvent) {
    const size_t wanted = run.empty() ? kFirstPiece : size_t{run.back().size} * 2;
    const size_t size = std::min(wanted, kLargestPiece);
    run.push_back(
        {std::make_unique_for_overwrite<uint8_t[]>(size), 0, static_cast<uint32_t>(size)});
  }
  return run.back();
}

void PackedRow::add(const BlockEvent& event) {
  if (runs_.empty() || is_earlier(event, before_)) {
    runs_.emplace_back();
    before_ = {};
  }
  Piece& piece = room_in(runs_.back());
  uint8_t* at = piece.bytes.get() + piece.used;
  const uint64_t has = uint64_t{event.correlation != 0} | uint64_t{event.extra != 0} << 1 |
                       uint64_t{event.external_id != 0} << 2;
  const auto begin = static_cast<uint64_t>(event.begin) - static_cast<uint64_t>(before_.begin);
  at = put_varint(at, std::min(begin, kFar) << kFlagBits | has);
  if (begin >= kFar) at = put_varint(at, begin);
  at = put_varint(at, static_cast<uint64_t>(event.end - event.begin));
  at = put_varint(at, number(event.shape));
  const auto put = [&at](auto now, auto& before) {
    if (!now) return;
    at = put_varint(at, zigzag(static_cast<int64_t>(uint64_t{now} - before)));
    before = now;
  };
  put(event.correlation, before_.correlation);
  put(event.extra, before_.extra);
  put(event.external_id, before_.external_id);
  before_.begin = event.begin;
  before_.end = event.end;
  piece.used = static_cast<uint32_t>(at - piece.bytes.get());
  ++size_;
}

bool RunReader::next() {
  while (left_.at_end()) {
    if (piece_ > 0) run_[piece_ - 1].bytes.reset();
    if (piece_ == run_.size()) return false;
    const PackedRow::Piece& piece = run_[piece_++];
    left_ = Varints({reinterpret_cast<const char*>(piece.bytes.get()), piece.used});
  }
  const uint64_t head = left_.next();
  uint64_t begin = head >> kFlagBits;
  if (begin == kFar) begin = left_.next();
  before_.begin = static_cast<int64_t>(static_cast<uint64_t>(before_.begin) + begin);
  event_.begin = before_.begin;
  event_.end = event_.begin + static_cast<int64_t>(left_.next());
  event_.shape = static_cast<ShapeIndex>(left_.next());
  const auto get = [this, head](uint64_t flag, auto& now, auto& before) {
    using Number = std::remove_reference_t<decltype(now)>;
    if (head & flag) {
      before = static_cast<Number>(before + static_cast<uint64_t>(left_.next_signed()));
    }
    now = head & flag ? before : 0;
  };
  get(kHasCorrelation, event_.correlation, before_.correlation);
  get(kHasExtra, event_.extra, before_.extra);
  get(kHasExternalId, event_.external_id, before_.external_id);
  return true;
}

void LaneEvents::add(PackedRow row) {
  for (PackedRow::Run& run : row.runs_) runs_.emplace_back(std::move(run));
}

bool LaneEvents::later(uint32_t a, uint32_t b) const {
  const BlockEvent &x = runs_[a].event(), &y = runs_[b].event();
  if (is_earlier(x, y)) return false;
  return is_earlier(y, x) || a > b;
}

const BlockEvent* LaneEvents::next() {
  const auto after = [this](uint32_t a, uint32_t b) { return later(a, b); };
  if (!begun_) {
    begun_ = true;
    for (uint32_t i = 0; i < runs_.size(); ++i) {
      if (runs_[i].next()) heap_.push_back(i);
    }
    std::make_heap(heap_.begin(), heap_.end(), after);
  } else if (!heap_.empty()) {  // what was on top has been taken
    const uint32_t taken = heap_.front();
    if (heap_.size() == 1) {
      if (!runs_[taken].next()) heap_.clear();
    } else {
      std::pop_heap(heap_.begin(), heap_.end(), after);
      runs_[taken].next() ? std::push_heap(heap_.begin(), heap_.end(), after) : heap_.pop_back();
    }
  }
  return heap_.empty() ? nullptr : &runs_[heap_.front()].event();
}

}  // namespace gpuprof::kineto
