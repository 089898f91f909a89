// SPDX-License-Identifier: Apache-2.0
#include "collector/window/step_source.h"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <utility>

#include "collector/base/log.h"
#include "collector/record/session.h"

namespace gpuprof {
namespace {

constexpr uint64_t kSaidAfter = 8;  // steps, of what was chosen more than once in start-up

}  // namespace

void publish_source() {
  Session& s = session();
  const LockGuard guard(s.source_lock);
  s.source = s.tracker.source();
  s.tracker.describe(s.source_text, sizeof s.source_text);
}

void say_source() {
  const Session& s = session();
  const int32_t device = s.tracker.leading_device();
  if (device == kUnknownDevice) return log_line(LogLevel::info, "steps: %s", s.source_text);
  log_line(LogLevel::info,
           "steps: %s, of GPU %d and thread %u: other GPUs of this process mark theirs%s",
           s.source_text, device, s.tracker.leading_thread(),
           s.tracker.source() == StepSource::nvtx ? "; nvtx:NAME@THREAD chooses another" : "");
}

// What is chosen again and again in start-up is said when it has lasted, once.
void say_source_once(bool chosen_now, uint64_t newest) {
  Session& s = session();
  if (chosen_now) s.source_unsaid = std::strcmp(s.start_up_source, s.source_text) == 0;
  if (s.source_unsaid ? newest < kSaidAfter : !chosen_now) return;
  static std::atomic<bool> said{false};
  if (std::exchange(s.source_unsaid, false) && said.exchange(true)) return;
  say_source();
}

StepSource step_source() {
  Session& s = session();
  const LockGuard guard(s.source_lock);
  return s.source;
}

void describe_step_source(char* out, size_t size) {
  Session& s = session();
  const LockGuard guard(s.source_lock);
  std::snprintf(out, size, "%s", s.source_text);
}

void describe_step_source_of(const Window& window, char* out, size_t size) {
  if (window.source[0] == '\0') return describe_step_source(out, size);
  std::snprintf(out, size, "%s", window.source);
}

}  // namespace gpuprof
