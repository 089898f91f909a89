// SPDX-License-Identifier: Apache-2.0
#include "collector/window/losses.h"

#include <atomic>

#include "collector/base/fork.h"
#include "collector/record/ring.h"

namespace gpuprof {
namespace {

constexpr Loss kLasting[] = {Loss::step_log_full, Loss::memory_log_full};
constexpr Loss kOfCupti[] = {Loss::cupti_dropped, Loss::cupti_unknown, Loss::cupti_incomplete};

LossCounts g_in_dumps{};

void forget_losses() { g_in_dumps = {}; }
GPUPROF_FORGET_IN_CHILD(forget_losses);

std::atomic<uint64_t>& counter(size_t cause) {
  return loss_counter(*ring()->header, static_cast<uint32_t>(cause));
}

}  // namespace

LossCounts new_losses() {
  LossCounts out{};
  for (size_t i = 0; i < out.size(); ++i) out[i] = counter(i).load(std::memory_order_relaxed);
  return out;
}

void note_dumped_losses(const LossCounts& losses) {
  for (size_t i = 0; i < losses.size(); ++i) {
    counter(i).fetch_sub(losses[i], std::memory_order_relaxed);
    g_in_dumps[i] += losses[i];
  }
}

void forget_dumped_losses(const LossCounts& losses) {
  for (size_t i = 0; i < losses.size(); ++i) g_in_dumps[i] -= losses[i];
}

LossCounts all_losses() {
  LossCounts out = new_losses();
  for (size_t i = 0; i < out.size(); ++i) out[i] += g_in_dumps[i];
  return out;
}

LossCounts without_lasting(const LossCounts& losses) {
  LossCounts out = losses;
  for (const Loss cause : kLasting) out[static_cast<size_t>(cause)] = 0;
  return out;
}

void forget_losses_of_cupti() {
  for (const Loss cause : kOfCupti) counter(static_cast<size_t>(cause)).store(0);
}

}  // namespace gpuprof
