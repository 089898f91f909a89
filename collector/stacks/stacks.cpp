// SPDX-License-Identifier: Apache-2.0
#include "collector/stacks/stacks.h"

#include <cstring>

#include "collector/base/fork.h"
#include "collector/base/idle.h"
#include "collector/base/log.h"
#include "collector/base/os.h"
#include "collector/python/calling_frames.h"
#include "collector/record/ring.h"
#include "collector/record/session.h"
#include "collector/record/shed.h"
#include "collector/stacks/frame_rules.h"
#include "collector/stacks/unwind.h"

namespace gpuprof {
namespace {

// Of one kind; a cache line each, because threads count different kinds at once. Releases of memory
// have their own: of a program that allocates and frees in turn one in two would be always the
// same.
struct alignas(64) Turn {
  std::atomic<uint32_t> calls{0};
};
constexpr size_t kReleases = kStackKindCount;
constinit Turn g_turns[kStackKindCount + 1];

constinit std::atomic<bool> g_on{false};
GPUPROF_IDLE_DATA constinit const char* g_note = "";
constinit bool g_forked = false;  // another thread of the parent may have held the loader's lock

}  // namespace

bool stacks_are_wanted() {
  for (const uint32_t every : session().config.stack_every) {
    if (every != 0) return true;
  }
  return activity_on(Activity::heap) || activity_on(Activity::samples_native);
}

namespace {
// Whether calls of a kind leave records, which stacks belong to. In a captured graph launches have
// stacks in any case.
bool is_recorded(StackKind kind) {
  switch (kind) {
    case StackKind::launch: return activity_on(Activity::api);
    case StackKind::sync: return activity_on(Activity::sync);
    case StackKind::alloc: return activity_on(Activity::alloc) || session().config.memory;
    case StackKind::nccl: return activity_on(Activity::nccl);
    case StackKind::count: break;
  }
  return true;
}
}  // namespace

void warn_of_calls_without_stacks() {
  constexpr const char* kNeeds[] = {"api", "sync", "alloc", "nccl"};  // by StackKind
  static_assert(sizeof kNeeds / sizeof kNeeds[0] == kStackKindCount);
  const Session& s = session();
  const char* const asked = s.settings->text(Setting::stacks);
  if (std::strcmp(asked, "preset") == 0) return;
  for (size_t i = 0; i < kStackKindCount; ++i) {
    const auto kind = static_cast<StackKind>(i);
    if (s.config.stack_every[i] == 0 || is_recorded(kind)) continue;
    log_line(LogLevel::warn,
             "GPUPROF_STACKS=%s gives no stacks of %s: the activity %s is not recorded; add it to "
             "GPUPROF_ACTIVITIES",
             asked, stack_kind_name(kind), kNeeds[i]);
  }
}

void prepare_stacks() {
  g_on.store(false, std::memory_order_release);
  g_note = "";
  if (!stacks_are_wanted()) return;
  prepare_unwind();
  if (g_forked && !frame_rules_need_no_lock()) {
    g_note = "no stacks: this process was forked from one that recorded stacks";
    log_line(LogLevel::warn, "%s", g_note);
    return;
  }
  g_on.store(true, std::memory_order_release);
}

namespace {
void forget_stacks_in_child() {
  if (g_on.exchange(false)) g_forked = true;
}
GPUPROF_FORGET_IN_CHILD(forget_stacks_in_child);
}  // namespace

bool stacks_are_on() { return g_on.load(std::memory_order_acquire); }

StackKind stack_kind(const ApiRow& row) {
  switch (row.kind) {
    case Kind::launch: return StackKind::launch;
    case Kind::sync: return StackKind::sync;
    case Kind::alloc:
    case Kind::dealloc: return StackKind::alloc;
    case Kind::collective: return StackKind::nccl;
    default: return StackKind::count;
  }
}

bool stack_wanted(const ApiRow& row) {
  const auto kind = static_cast<size_t>(stack_kind(row));
  return kind < kStackKindCount && session().config.stack_every[kind] != 0 && stacks_are_on() &&
         !is_shed(ShedKind::stacks);
}

void restart_stack_counts() {
  for (Turn& turn : g_turns) turn.calls.store(0, std::memory_order_relaxed);
  forget_calling_frames();
}

const char* stack_note() { return g_note; }

namespace {

TakenStack take_now() {
  Ring* const buffers = ring();
  if (!buffers || !stacks_are_on()) return {};
  const uint64_t begin = now_ticks();
  const ErrnoGuard keep_errno;
  uint64_t frames[kMaxStackFrames], stack_pointers[kMaxStackFrames];
  const size_t native = unwind(frames, kMaxStackFrames, stack_pointers);
  const size_t count = merge_python_frames(frames, stack_pointers, native, kMaxStackFrames);
  if (count == 0) return {};
  const StringId id =
      buffers->stacks.intern({reinterpret_cast<const char*>(frames), count * sizeof(uint64_t)});
  if (id == 0) count_loss(Loss::stack_table_full);
  return {id, static_cast<uint32_t>(now_ticks() - begin)};
}

TakenStack take(StackKind of, size_t turn) {
  const auto kind = static_cast<size_t>(of);
  if (kind >= kStackKindCount || !stacks_are_on() || is_shed(ShedKind::stacks)) return {};
  const uint32_t every = session().config.stack_every[kind];
  if (every == 0) return {};
  if (every != 1 && g_turns[turn].calls.fetch_add(1, std::memory_order_relaxed) % every != 0) {
    return {};
  }
  return take_now();
}

}  // namespace

TakenStack take_stack(ApiId api) {
  const ApiRow& row = api_rows()[api];
  const StackKind kind = stack_kind(row);
  return take(kind, row.kind == Kind::dealloc ? kReleases : static_cast<size_t>(kind));
}
TakenStack take_allocation_stack() {
  return take(StackKind::alloc, static_cast<size_t>(StackKind::alloc));
}
TakenStack take_heap_stack() { return take_now(); }

Record* reserve_record_after(const TakenStack& stack, uint64_t begin, uint64_t end) {
  if (stack.id == 0) return reserve_record();
  Record* first = t_state.next;
  const uintptr_t place = reinterpret_cast<uintptr_t>(first) & (kChunkBytes - 1);
  if (place == 0 || place == kChunkBytes - sizeof(Record)) first = reserve_record_slow();
  if (!first) return nullptr;
  *first = Record{};
  begin_record(first, Kind::stack, begin, end);
  first->stack.stack = stack.id;
  first->stack.ticks = stack.ticks;
  return first + 1;
}

}  // namespace gpuprof
