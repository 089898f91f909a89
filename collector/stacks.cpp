// SPDX-License-Identifier: Apache-2.0
#include "collector/stacks.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>

#include "collector/libraries.h"
#include "collector/log.h"
#include "collector/os.h"
#include "collector/ring.h"
#include "collector/session.h"

namespace gpuprof {
namespace {

constexpr size_t kOwnFrames = 8;  // ours lie among the innermost so many

// Of one kind; a cache line each, because threads count different kinds at once.
struct alignas(64) Turn {
  std::atomic<uint32_t> calls{0};
};
constinit Turn g_turns[kStackKindCount];

// libunwind's per-thread caches of how to unwind each address, and the call that voids them.
using FlushCache = void (*)(void* space, uintptr_t low, uintptr_t high);

constinit std::atomic<Unwinder> g_unwind{nullptr};
constinit FlushCache g_flush = nullptr;
constinit void* g_address_space = nullptr;
constinit const char* g_note = "";
constinit bool g_forked = false;  // the parent unwound: its locks may be held for ever here
uintptr_t g_own_begin = 0, g_own_end = 0;  // this library's code

int glibc_backtrace(void** frames, int size) { return ::backtrace(frames, size); }

bool is_own(const void* address) {
  const auto place = reinterpret_cast<uintptr_t>(address);
  return place >= g_own_begin && place < g_own_end;
}

// Where this library's code lies: only if it is a library (a test links it into its program).
int find_own_code(dl_phdr_info* info, size_t, void*) {
  const auto here = reinterpret_cast<uintptr_t>(&find_own_code);
  if (!info->dlpi_name || !info->dlpi_name[0]) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    const uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    if (segment.p_type != PT_LOAD || here < begin || here >= begin + segment.p_memsz) continue;
    g_own_begin = begin;
    g_own_end = begin + segment.p_memsz;
    return 1;
  }
  return 0;
}

bool open_libunwind(const char* library) {
  void* handle = ::dlopen(library, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
  if (!handle) handle = ::dlopen(library, RTLD_LAZY | RTLD_LOCAL);
  void* const unwind = real_symbol(handle, "unw_backtrace");
  if (!unwind) return false;
  g_flush = reinterpret_cast<FlushCache>(real_symbol(handle, "_ULx86_64_flush_cache"));
  void* const space = real_symbol(handle, "_ULx86_64_local_addr_space");
  g_address_space = space ? *static_cast<void**>(space) : nullptr;
  g_unwind.store(reinterpret_cast<Unwinder>(unwind), std::memory_order_release);
  return true;
}

bool any_wanted() {
  for (const uint32_t every : session().config.stack_every) {
    if (every != 0) return true;
  }
  return false;
}

// Takes this library's frames out, wherever they are: a call within a call has hooks further out,
// too. `caller` is where the innermost hook returns to. Returns how many are left.
size_t remove_own_frames(void** frames, size_t count, const void* caller) {
  size_t first = 0;
  for (size_t i = 0; i < count && i < kOwnFrames; ++i) {
    if (frames[i] == caller) first = i;
  }
  size_t kept = 0;
  for (size_t i = first; i < count; ++i) {
    if (!is_own(frames[i])) frames[kept++] = frames[i];
  }
  return kept;
}

}  // namespace

void prepare_stacks(const char* library) {
  g_unwind.store(nullptr, std::memory_order_release);
  g_note = "";
  if (!any_wanted()) return;
  if (g_forked) {
    g_note = "no stacks: this process was forked from one that recorded stacks";
    log_line(LogLevel::warn, "%s", g_note);
    return;
  }
  ::dl_iterate_phdr(find_own_code, nullptr);
  if (!open_libunwind(library)) {
    g_note = "taken by glibc's backtrace(), about 4 us each: libunwind.so.8 could not be opened";
    log_line(LogLevel::warn,
             "call stacks cost about 4 us each: %s could not be opened; install libunwind8 "
             "(0.3 us each), or set GPUPROF_STACKS=launch:20 or so",
             library);
    g_unwind.store(&glibc_backtrace, std::memory_order_release);
  }
  // The first call opens libraries and allocates; not on a thread of the program.
  void* frames[kMaxStackFrames];
  g_unwind.load()(frames, kMaxStackFrames);
}

void forget_stacks_in_child() {
  if (g_unwind.exchange(nullptr)) g_forked = true;
}

bool stacks_are_on() { return g_unwind.load(std::memory_order_acquire) != nullptr; }

StackKind stack_kind(const ApiRow& row) {
  switch (row.kind) {
    case Kind::launch: return StackKind::launch;
    case Kind::sync: return StackKind::sync;
    case Kind::alloc: return StackKind::alloc;
    case Kind::collective: return StackKind::nccl;
    default: return StackKind::count;
  }
}

bool stack_wanted(const ApiRow& row) {
  const auto kind = static_cast<size_t>(stack_kind(row));
  return kind < kStackKindCount && session().config.stack_every[kind] != 0 && stacks_are_on();
}

void restart_stack_counts() {
  for (Turn& turn : g_turns) turn.calls.store(0, std::memory_order_relaxed);
}

void forget_unwind_cache() {
  if (g_flush && g_address_space) g_flush(g_address_space, 0, 0);
}

const char* stack_note() { return g_note; }

TakenStack take_stack(ApiId api, const void* caller) {
  const auto kind = static_cast<size_t>(stack_kind(api_rows()[api]));
  const Unwinder unwind = g_unwind.load(std::memory_order_acquire);
  if (kind >= kStackKindCount || !unwind) return {};
  const uint32_t every = session().config.stack_every[kind];
  if (every != 1 && g_turns[kind].calls.fetch_add(1, std::memory_order_relaxed) % every != 0) {
    return {};
  }
  const uint64_t begin = now_ticks();
  const ErrnoGuard keep_errno;
  Ring* const buffers = ring();
  void* frames[kMaxStackFrames];
  const int found = unwind(frames, kMaxStackFrames);
  if (found <= 0 || !buffers) return {};
  const size_t count = remove_own_frames(frames, static_cast<size_t>(found), caller);
  if (count == 0) return {};
  const std::string_view bytes(reinterpret_cast<const char*>(frames), count * sizeof(void*));
  const StringId id = buffers->stacks.intern(bytes);
  if (id == 0) count_loss(Loss::stack_table_full);
  return {id, static_cast<uint32_t>(now_ticks() - begin)};
}

Record* reserve_record_after(const TakenStack& stack, uint64_t begin, uint64_t end) {
  if (stack.id == 0) return reserve_record();
  Record* first = t_state.next;
  const uintptr_t place = reinterpret_cast<uintptr_t>(first) & (kChunkBytes - 1);
  if (place == 0 || place == kChunkBytes - sizeof(Record)) first = reserve_record_slow();
  if (!first) return nullptr;
  *first = Record{};
  first->begin = begin;
  first->end = end;
  first->api = kNoApi;
  first->kind = Kind::stack;
  first->stack.stack = stack.id;
  first->stack.ticks = stack.ticks;
  return first + 1;
}

}  // namespace gpuprof
