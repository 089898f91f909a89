// SPDX-License-Identifier: Apache-2.0
#include "collector/samples/samples.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>

#include "collector/base/clock.h"
#include "collector/base/fork.h"
#include "collector/base/log.h"
#include "collector/base/os.h"
#include "collector/python/calling_frames.h"
#include "collector/python/frame_check.h"
#include "collector/record/ring.h"
#include "collector/record/session.h"
#include "collector/record/shed.h"
#include "collector/samples/native_samples.h"
#include "collector/samples/thread_times.h"

namespace gpuprof {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;
constexpr uint64_t kThreadsPeriodNs = 100'000'000;  // between two looks for threads
constexpr size_t kMostThreads = 16;                 // that are sampled
constexpr size_t kMostCallers = 64;                 // threads of a window known to call CUDA
// Samples come less often where they would take more than a hundredth of a core.
constexpr uint64_t kOneOf = 100, kLongestNs = 50'000'000;

constinit std::atomic<bool> g_window{false};
constinit std::atomic<bool> g_stop{false};
constinit std::atomic<uint32_t> g_word{0};  // changes with each of the two
constinit std::atomic<uint32_t> g_alive{0};
constinit std::atomic<uint64_t> g_cpu_ns{0};
constinit char g_note[120] = "";  // drain thread
struct Sampler {
  uint32_t callers[kMostCallers];
  size_t caller_count;
  struct Thread {
    SampledFrames::ThreadPlace place;  // state 0: Python does not know it
    SampledFrames::Seen seen;
    ThreadCounts counts;  // where native frames are wanted
  };
  Thread threads[kMostThreads];
  size_t thread_count;
  uint64_t next_look_ns, next_forget_ns;
  uint64_t frames[kMaxStackFrames];
  NativeStack native;
};
constinit Sampler g_sampler{};

bool lives(uint32_t tid) { return ::syscall(SYS_tgkill, session().pid, tid, 0) == 0; }

// Threads that have ended are none; they make room where there is no more.
void note_caller(Sampler& sampler, uint32_t tid) {
  uint32_t* const begin = sampler.callers;
  uint32_t* end = begin + sampler.caller_count;
  if (std::find(begin, end, tid) != end || !lives(tid)) return;
  if (sampler.caller_count == kMostCallers) {
    end = std::remove_if(begin, end, [](uint32_t known) { return !lives(known); });
    sampler.caller_count = static_cast<size_t>(end - begin);
  }
  if (sampler.caller_count < kMostCallers) sampler.callers[sampler.caller_count++] = tid;
}

bool is_caller(const Sampler& sampler, uint32_t tid) {
  for (size_t i = 0; i < sampler.caller_count; ++i) {
    if (sampler.callers[i] == tid) return true;
  }
  return false;
}

// Not of the thread that CUPTI hands records over on, nor of this one.
bool is_of_caller(const RingChunk& chunk) {
  constexpr uint32_t kLooks = 8;
  if (chunk.state.load(std::memory_order_acquire) == static_cast<uint32_t>(ChunkState::free)) {
    return false;
  }
  const uint32_t count = std::min(chunk.committed.load(std::memory_order_acquire), kLooks);
  for (uint32_t i = 0; i < count; ++i) {
    const Kind kind = chunk.records[i].kind;
    if (!is_gpu_kind(kind) && kind != Kind::sample) return true;
  }
  return false;
}

bool is_sampled(const Sampler& sampler, uint32_t tid) {
  for (size_t i = 0; i < sampler.thread_count; ++i) {
    if (sampler.threads[i].place.tid == tid) return true;
  }
  return false;
}

// What the last samples left of a thread, if that was the same one.
Sampler::Thread known_or_new(const Sampler::Thread* known, size_t count,
                             const SampledFrames::ThreadPlace& place) {
  for (size_t i = 0; i < count; ++i) {
    if (known[i].place.state == place.state && known[i].place.tid == place.tid) return known[i];
  }
  return {place, {}, {}};
}

// Threads that have written records since the window began: those that Python knows, and with
// native frames the others.
void look_for_threads(Sampler& sampler) {
  Ring& buffers = *ring();
  for (uint32_t i = 0; i < buffers.header->chunk_count; ++i) {
    const RingChunk& chunk = *buffers.chunk(i);
    if (is_of_caller(chunk)) note_caller(sampler, chunk.thread_id);
  }
  Sampler::Thread before[kMostThreads];
  const size_t before_count = sampler.thread_count;
  std::memcpy(before, sampler.threads, sizeof before);
  sampler.thread_count = 0;
  const auto add = [&](const SampledFrames::ThreadPlace& place) {
    if (sampler.thread_count == kMostThreads) return;
    sampler.threads[sampler.thread_count++] = known_or_new(before, before_count, place);
  };
  if (frames_state() == FramesState::known) {
    SampledFrames::ThreadPlace all[256];
    const size_t count =
        sampled_frames().threads(known_interpreter().oldest, known_interpreter().address, all, 256);
    for (size_t i = 0; i < count; ++i) {
      if (is_caller(sampler, all[i].tid)) add(all[i]);
    }
  }
  if (!native_samples_on()) return;
  for (size_t i = 0; i < sampler.caller_count; ++i) {
    if (!is_sampled(sampler, sampler.callers[i])) add({0, sampler.callers[i]});
  }
  for (size_t i = 0; i < sampler.thread_count; ++i) {
    Sampler::Thread& thread = sampler.threads[i];
    if (!read_thread_counts(thread.place.tid, thread.counts)) thread.counts.lets_signal_in = false;
  }
}

void record_sample(uint64_t ticks, uint32_t tid, const uint64_t* frames, size_t count) {
  const StringId stack =
      ring()->stacks.intern({reinterpret_cast<const char*>(frames), count * sizeof(uint64_t)});
  if (stack == 0) return count_loss(Loss::stack_table_full);
  Record* const record = reserve_record();
  if (!record) return;
  *record = Record{};
  begin_record(record, Kind::sample, ticks, ticks);
  record->sample.stack = stack;
  record->sample.thread = tid;
  commit_record(record);
}

// Adds the thread's native frames to those of Python that were read and named, if they are of the
// same moment: Python's must be the same afterwards as before. A thread whose frames come and go
// faster than that has Python's alone.
size_t add_native(Sampler& sampler, Sampler::Thread& thread, const ThreadLook& look, size_t count) {
  NativeStack& native = sampler.native;
  if (!take_native_stack(thread.place.tid, look, thread.counts, native)) return count;
  SampledFrames& reader = sampled_frames();
  if (!reader.stands_still(thread.place.state, thread.seen)) return count;
  const size_t merged = merge_read_frames(native.frames, native.stack_pointers, native.count,
                                          kMaxStackFrames, reader, sampler.frames, count);
  std::memcpy(sampler.frames, native.frames, merged * sizeof(uint64_t));
  return merged;
}

void sample_native(Sampler& sampler, Sampler::Thread& thread, uint64_t ticks,
                   const ThreadLook& look) {
  NativeStack& native = sampler.native;
  if (take_native_stack(thread.place.tid, look, thread.counts, native)) {
    record_sample(ticks, thread.place.tid, native.frames, native.count);
  }
}

// The thread's frames of Python, named, as they were at `ticks`. A thread that this one has put off
// its processor in the middle of a call stays there however often it is read: between readings it
// is let go on. What is lost is counted.
SampledFrames::Outcome read_python(Sampler& sampler, Sampler::Thread& thread, size_t& count,
                                   uint64_t& ticks) {
  constexpr uint64_t kFirstPauseNs = 50'000, kLongestPauseNs = 4'000'000;
  SampledFrames& reader = sampled_frames();
  const uint32_t seen = g_word.load(std::memory_order_acquire);
  for (uint64_t pause = kFirstPauseNs;; pause *= 2) {
    ticks = now_ticks();
    SampledFrames::Outcome outcome = reader.walk(thread.place.state, thread.seen, count);
    // The thread may have ended meanwhile, and another one have got its place: no loss.
    if (!reader.is_there(thread.place, known_interpreter().address)) {
      return SampledFrames::Outcome::none;
    }
    if (outcome == SampledFrames::Outcome::read) outcome = reader.name(count, sampler.frames);
    if (outcome != SampledFrames::Outcome::torn) return outcome;
    if (pause > kLongestPauseNs) break;
    futex_wait(g_word, seen, pause);
    if (g_word.load(std::memory_order_acquire) != seen) return SampledFrames::Outcome::none;
  }
  count_loss(Loss::sample_torn);
  return SampledFrames::Outcome::torn;
}

void sample(Sampler& sampler, Sampler::Thread& thread) {
  const bool native = native_samples_on() && thread.counts.lets_signal_in;
  const ThreadLook look = native ? look_at_thread(thread.place.tid) : ThreadLook{};
  uint64_t ticks = now_ticks();
  if (thread.place.state) {
    size_t count = 0;
    switch (read_python(sampler, thread, count, ticks)) {
      case SampledFrames::Outcome::none: break;
      case SampledFrames::Outcome::torn:
      case SampledFrames::Outcome::no_room: return;
      case SampledFrames::Outcome::read:
        if (native) count = add_native(sampler, thread, look, count);
        return record_sample(ticks, thread.place.tid, sampler.frames, count);
    }
  }
  if (native) sample_native(sampler, thread, ticks, look);
}

// When the next sample is due, after one at `now`.
uint64_t next_due(uint64_t due, uint64_t now, uint64_t begun, uint64_t spent) {
  due += kSamplePeriodNs;
  if (due < now) due = now + kSamplePeriodNs;  // late by more than one: those are lost
  const uint64_t paid_for = begun + kOneOf * (spent - std::min(spent, kFirstSamplesNs));
  return std::max(due, std::min(paid_for, now + kLongestNs));
}

void sample_window(Sampler& sampler) {
  const uint64_t cpu_at_begin = thread_cpu_ns();
  const uint32_t word = g_word.load(std::memory_order_acquire);
  sampler.caller_count = sampler.thread_count = 0;
  sampler.next_look_ns = sampler.next_forget_ns = 0;
  note_caller(sampler, session().pid);
  const uint64_t begun = monotonic_ns();
  uint64_t due = begun;
  for (;;) {
    if (g_word.load(std::memory_order_acquire) != word || !g_window.load() || g_stop.load()) break;
    const uint64_t now = monotonic_ns();
    if (now < due) {
      futex_wait(g_word, word, due - now);
      continue;
    }
    const uint64_t spent = thread_cpu_ns() - cpu_at_begin;
    g_cpu_ns.store(spent, std::memory_order_relaxed);
    due = next_due(due, now, begun, spent);
    const bool python = frames_state() == FramesState::known;
    if (!python && !native_samples_on()) continue;
    if (now >= sampler.next_look_ns) {
      sampler.next_look_ns = now + kThreadsPeriodNs;
      look_for_threads(sampler);
    }
    if (python && now >= sampler.next_forget_ns) {
      sampler.next_forget_ns = now + kSecondNs;
      sampled_frames().forget();
    }
    for (size_t i = 0; i < sampler.thread_count; ++i) {
      note_thread_times(sampler.threads[i].place.tid);
      sample(sampler, sampler.threads[i]);
    }
  }
  g_cpu_ns.store(thread_cpu_ns() - cpu_at_begin, std::memory_order_relaxed);
}

void* run(void*) {
  const BlockedScope blocked;
  ::prctl(PR_SET_NAME, "gpuprof-samples");
  while (!g_stop.load(std::memory_order_acquire)) {
    const uint32_t seen = g_word.load(std::memory_order_acquire);
    if (g_window.load(std::memory_order_acquire)) {
      sample_window(g_sampler);
    } else {
      futex_wait(g_word, seen, 60 * kSecondNs);
    }
  }
  g_alive.store(0, std::memory_order_release);
  futex_wake_all(g_alive);
  return nullptr;
}

void wake() {
  g_word.fetch_add(1, std::memory_order_release);
  futex_wake_all(g_word);
}

bool start_sampling_thread() {
  g_stop.store(false);
  g_alive.store(1);
  const int failed = start_thread(run, 256 * 1024);
  g_note[0] = '\0';
  if (!failed) return true;
  g_alive.store(0);
  std::snprintf(g_note, sizeof g_note, "cannot start a thread: %s", std::strerror(failed));
  log_line(LogLevel::warn, "no host samples: %s", g_note);
  return false;
}

}  // namespace

void samples_window_begins() {
  g_cpu_ns.store(0);
  if (!activity_on(Activity::samples)) return;
  if (frames_state() == FramesState::off && !native_samples_on()) return;
  if (is_shed(ShedKind::samples)) {
    std::snprintf(g_note, sizeof g_note, "GPUPROF_BUDGET had left them out before");
    return;
  }
  if (g_alive.load() == 0 && !start_sampling_thread()) return;
  g_window.store(true, std::memory_order_release);
  wake();
}

void samples_window_ends() {
  g_window.store(false, std::memory_order_release);
  wake();
}

void samples_stop() {
  g_stop.store(true, std::memory_order_release);
  wake();
  const uint64_t begun = monotonic_ns();
  while (g_alive.load(std::memory_order_acquire) && monotonic_ns() - begun < kSecondNs) {
    futex_wait(g_alive, 1, 10'000'000);
  }
}

const char* samples_note() { return g_note[0] ? g_note : frames_note(); }

uint64_t samples_cpu_ns() { return g_cpu_ns.load(std::memory_order_relaxed); }
uint32_t samples_threads() { return g_alive.load(std::memory_order_relaxed); }

namespace {
void forget_samples() {
  g_window = g_stop = false;
  g_alive = 0;
  g_word = 0;
  g_note[0] = '\0';
}
GPUPROF_FORGET_IN_CHILD(forget_samples);
}  // namespace

}  // namespace gpuprof
