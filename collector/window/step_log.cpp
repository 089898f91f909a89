// SPDX-License-Identifier: Apache-2.0
#include "collector/window/step_log.h"

#include <algorithm>

#include "collector/record/ring.h"
#include "collector/record/session.h"
#include "collector/window/drain.h"
#include "formats/core/encode.h"

namespace gpuprof {
namespace {

constexpr int kCompressionLevel = 6;

uint64_t capacity() { return ring()->header->steps.bytes / sizeof(uint64_t); }

uint64_t logged() {
  return ring()->header->steps.used.load(std::memory_order_acquire) / sizeof(uint64_t);
}

}  // namespace

bool log_step(uint64_t ticks) {
  RingHeader& header = *ring()->header;
  const uint64_t index = logged();
  const uint64_t kept = index - header.steps_base.load(std::memory_order_acquire);
  if (kept >= capacity()) {
    count_loss(Loss::step_log_full);
    return false;
  }
  if (kept == capacity() / 2) drain_wake();  // to make room
  ring()->region<uint64_t>(header.steps)[index % capacity()] = ticks;
  header.steps.used.store((index + 1) * sizeof(uint64_t), std::memory_order_release);
  return true;
}

uint64_t first_boundary_from(uint64_t ticks) {
  RingHeader& header = *ring()->header;
  const uint64_t* const slots = ring()->region<uint64_t>(header.steps);
  uint64_t number = logged();
  const uint64_t base = header.steps_base.load(std::memory_order_relaxed);
  while (number > base && slots[(number - 1) % capacity()] >= ticks) --number;
  return number;
}

bool restart_step_log() {
  RingHeader& header = *ring()->header;
  if (logged() > capacity() / 4) return false;  // make_room() may have begun to move it
  header.steps.used.store(0, std::memory_order_release);
  return true;
}

void move_last_step(uint64_t ticks) {
  RingHeader& header = *ring()->header;
  const uint64_t count = logged();
  if (count == 0) return;
  ring()->region<uint64_t>(header.steps)[(count - 1) % capacity()] = ticks;
}

bool StepLog::encode(ByteBuffer& out, uint64_t first, uint64_t count, const char* source) {
  const RingHeader& header = *ring()->header;
  const uint64_t* const slots = ring()->region<uint64_t>(header.steps);
  if (scratch_.empty() && !scratch_.resize(kAtOnce)) return false;
  for (uint64_t i = 0; i < count; ++i) scratch_[i] = slots[(first + i) % capacity()];
  return encode_steps(out, scratch_.data(), count, first, header.clock_shift, source);
}

// On disk, at the ring's end, before the slots are used again. A process killed in between has them
// twice, which readers notice by their numbers. Without a file, in memory.
bool StepLog::move(uint64_t first, uint64_t count) {
  body_.clear();
  const size_t before = moved_.size();
  char source[160];
  describe_step_source(source, sizeof source);
  if (!encode(body_, first, count, source)) return false;
  if (append_chunk(moved_, ChunkKind::steps, body_.data(), body_.size(), kCompressionLevel)) {
    OwnFile& ring_file = ring()->file;
    if (!ring_file.is_open() || tail_is_torn_) return true;
    const bool on_disk = ring_file.append(moved_.data(), moved_.size()) == 0;
    if (on_disk) tail_bytes_ += moved_.size();
    // A part of it may be there: what is appended next would not be where it is looked for.
    if (!on_disk) {
      tail_is_torn_ = ring_file.truncate(ring()->header->tail_offset + tail_bytes_) != 0;
    }
    moved_.clear();
    return on_disk;
  }
  moved_.truncate(before);
  return false;
}

void StepLog::make_room() {
  RingHeader& header = *ring()->header;
  const uint64_t base = header.steps_base.load(std::memory_order_relaxed);
  if (logged() - base <= capacity() / 2) return;
  for (uint64_t moved = 0; moved < capacity() / 2; moved += kAtOnce) {
    if (!move(base + moved, kAtOnce)) return;
    header.steps_base.store(base + moved + kAtOnce, std::memory_order_release);
  }
}

void StepLog::write(DumpFile& file, const Window& window) {
  char source[160];
  describe_step_source_of(window, source, sizeof source);
  file.copy(ring()->file, ring()->header->tail_offset, tail_bytes_);
  file.write_chunks(moved_.data(), moved_.size());
  const uint64_t end = logged();
  uint64_t first = ring()->header->steps_base.load(std::memory_order_relaxed);
  do {  // once where there are none: the source is told
    const uint64_t count = std::min<uint64_t>(end - first, kAtOnce);
    body_.clear();
    if (encode(body_, first, count, source)) file.write(ChunkKind::steps, body_);
    first += count;
  } while (first < end);
}

}  // namespace gpuprof
