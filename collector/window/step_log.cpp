// SPDX-License-Identifier: Apache-2.0
#include "collector/window/step_log.h"

#include "collector/record/ring.h"
#include "collector/record/session.h"
#include "formats/core/encode.h"

namespace gpuprof {
namespace {

constexpr int kCompressionLevel = 6;

uint64_t capacity() { return ring()->header->steps.bytes / sizeof(uint64_t); }

uint64_t logged() {
  return ring()->header->steps.used.load(std::memory_order_acquire) / sizeof(uint64_t);
}

}  // namespace

void log_step(uint64_t ticks) {
  RingHeader& header = *ring()->header;
  const uint64_t index = logged();
  if (index - header.steps_base.load(std::memory_order_acquire) >= capacity()) {
    count_loss(Loss::step_log_full);
    return;
  }
  ring()->region<uint64_t>(header.steps)[index % capacity()] = ticks;
  header.steps.used.store((index + 1) * sizeof(uint64_t), std::memory_order_release);
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
  if (count != session().boundaries) return;  // some were lost: numbers differ
  ring()->region<uint64_t>(header.steps)[(count - 1) % capacity()] = ticks;
}

bool StepLog::encode(ByteBuffer& out, uint64_t first, uint64_t count) {
  const RingHeader& header = *ring()->header;
  const uint64_t* const slots = ring()->region<uint64_t>(header.steps);
  scratch_.clear();
  for (uint64_t i = first; i < first + count; ++i) {
    if (!scratch_.push_back(slots[i % capacity()])) return false;
  }
  char source[160];
  describe_step_source(source, sizeof source);
  return encode_steps(out, scratch_.data(), count, first, header.clock_shift, source);
}

void StepLog::make_room() {
  RingHeader& header = *ring()->header;
  const uint64_t base = header.steps_base.load(std::memory_order_relaxed);
  const uint64_t count = capacity() / 2;
  if (logged() - base <= count) return;
  const size_t before = moved_.size();
  if (!encode(moved_, base, count) || !pieces_.push_back({before, moved_.size() - before})) {
    moved_.truncate(before);
    return;
  }
  if (ring()->file.is_open()) {
    // On disk, at the ring's end, before the slots are used again. A process killed in between has
    // them twice, which readers notice by their numbers.
    ByteBuffer chunk;
    if (append_chunk(chunk, ChunkKind::steps, moved_.data() + before, moved_.size() - before,
                     kCompressionLevel)) {
      (void)ring()->file.append(chunk.data(), chunk.size());
    }
  }
  header.steps_base.store(base + count, std::memory_order_release);
}

void StepLog::write(DumpFile& file) {
  ByteBuffer body;
  for (const Piece& piece : pieces_) {
    body.clear();
    if (body.append(moved_.data() + piece.offset, piece.size)) file.write(ChunkKind::steps, body);
  }
  body.clear();
  const uint64_t base = ring()->header->steps_base.load(std::memory_order_relaxed);
  if (encode(body, base, logged() - base)) file.write(ChunkKind::steps, body);
}

}  // namespace gpuprof
