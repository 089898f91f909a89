// SPDX-License-Identifier: Apache-2.0
// The only wrapper body. The program calls Hook<api, Signature>::enter instead of the real
// function. The exported symbol is an alias of it, so an unrecorded call costs two loads and a
// branch. The real call is made outside every lock; a call inside a call of the same library is
// part of it.
#pragma once

#include <atomic>

#include "collector/record/collector.h"
#include "collector/record/recorder.h"
#include "collector/sources/event_times.h"
#include "collector/sources/memory_log.h"
#include "preload/objects/copies.h"
#include "preload/resolve.h"

namespace gpuprof {

// Tag that picks the capture() overload of a row.
template <Kind K>
struct KindTag {};
// Tag that picks a row's observe() overload, where one exists: called after each call, recorded or
// not.
template <Api A>
struct ApiTag {};

// What a function returns when its library does not have it (an application that probes by symbol
// could see ours): the library's own "no such thing".
template <Library L>
struct FailValue;
template <>
struct FailValue<Library::cudart> {
  static constexpr int value = 500;  // cudaErrorSymbolNotFound
};
template <>
struct FailValue<Library::cupti> {
  static constexpr int value = 15;  // CUPTI_ERROR_NOT_INITIALIZED
};
template <>
struct FailValue<Library::driver> {
  static constexpr int value = 500;  // CUDA_ERROR_NOT_FOUND
};
template <>
struct FailValue<Library::nccl> {
  static constexpr int value = 3;  // ncclInternalError
};

// A launch's payload while the real call runs: put together before it, so that of eight arguments
// none occupies a register across the call. A library that does this has overloads of
//   void hold(HeldPayload&, arguments...)   and   void release(Record&, const HeldPayload&, result)
// in place of capture().
struct HeldPayload {
  uint64_t words[5];
};

namespace {  // internal linkage: each *_hooks.cpp has its own, and the alias below may name it

template <Api A, typename Signature>
class Hook;

template <Api A, typename R, typename... P>
class Hook<A, R(P...)> {
 public:
  using Real = R (*)(P...);

  static R enter(P... args) {
#ifndef GPUPROF_NOP
    const uint8_t flags = g_hook_flags[kId].load(std::memory_order_relaxed);
    // The callees take the same arguments in the same places: a jump, nothing is moved.
    if (__builtin_expect(flags != kHookSettled || kObserved, 0)) {
      if (flags == kHookFast && !kObserved) return record(args...);
      return traced(args...);
    }
#endif
    return real_.load(std::memory_order_relaxed)(args...);
  }

  // For functions whose body is written by hand.
  static R call_real(P... args) { return real_.load(std::memory_order_acquire)(args...); }

  static void* get() {
    const Real real = real_.load(std::memory_order_acquire);
    return real == &resolve_and_call ? nullptr : reinterpret_cast<void*>(real);
  }
  static void set(void* real) {
    real_.store(reinterpret_cast<Real>(real), std::memory_order_release);
  }

 private:
  static constexpr ApiId kId = static_cast<ApiId>(A);
  static constexpr ApiRow kRow = kApiRows[kId];
  static constexpr bool kDriver = kRow.library == Library::driver;
  using Scope = HookScope<kRow.library>;
  static constexpr bool kObserved = requires(R result, P... args) {
    observe(ApiTag<A>{}, result, args...);
  };

  static constexpr bool kPrepared = requires(P... args) {
    before_call(ApiTag<A>{}, KindTag<kRow.kind>{}, uint8_t{}, args...);
  };

  // Which kernel, graph or communicator the call is about, where a step source may ask.
  static constexpr bool kHasSubject = requires(P... args) {
    step_subject(KindTag<kRow.kind>{}, args...);
  };

  static constexpr bool kCapturable = makes_graph_node(kRow.kind);
  static constexpr bool kOfMemory = kRow.kind == Kind::alloc || kRow.kind == Kind::dealloc;
  static constexpr bool kCanHaveStack = can_have_stack(kRow.kind);
  static constexpr bool kHeld = requires(HeldPayload & held, P... args) { hold(held, args...); };

#ifndef GPUPROF_NOP
  // What failed has done nothing. A profiler's start says what the program wants in any case.
  template <typename Result>
  static bool may_mark(Result result) {
    constexpr int kInProgress = 7;  // ncclInProgress: of a communicator that does not block
    const int code = static_cast<int>(result);
    return code == 0 || (kRow.library == Library::nccl && code == kInProgress) ||
           kRow.role == ApiRole::profiler_start || kRow.role == ApiRole::profiler_stop;
  }

  // The common case by itself: recording with the counter and nothing else to do.
  [[gnu::noinline]] static R record(P... args) {
    const Scope scope(__builtin_dwarf_cfa());
    if (scope.nested()) return call_real(args...);
    return record_call<&read_counter>(scope, args...);
  }

  // Everything else a hook may have to do.
  [[gnu::noinline]] static R traced(P... args) {
    uint8_t flags = g_hook_flags[kId].load(std::memory_order_relaxed);
    if (flags == 0) {
      prepare_library();
      flags = wake_session(kId);
    }
    const Scope scope(__builtin_dwarf_cfa());
    if (scope.nested()) return call_real(args...);
    if constexpr (kPrepared) before_call(ApiTag<A>{}, KindTag<kRow.kind>{}, flags, args...);
    R result;
    bool captured = false;
    if (kCapturable && flags & (kHookCapture | kHookMemory | kHookEvents)) {
      result = call_with_record(scope, flags, captured, args...);
    } else if (flags & kHookRecord) {
      if (kCanHaveStack && flags & kHookStack) {
        const TakenStack stack = take_stack(kId);
        result = record_call<&now_ticks>(scope, args..., stack);
      } else {
        result = record_call<&now_ticks>(scope, args...);
      }
    } else {
      if (kCanHaveStack && flags & kHookStack) take_stack(kId);  // of the warm-up
      scope.enter();
      result = call_real(args...);
      scope.leave();
    }
    if constexpr (kObserved) observe(ApiTag<A>{}, result, args...);
    if (flags & kHookStep && !captured && may_mark(result)) {
      if constexpr (kHasSubject) {
        step_after_call(kId, step_subject(KindTag<kRow.kind>{}, args...));
      } else {
        step_after_call(kId, {});
      }
    }
    return result;
  }

  // The real call with the clock read around it, and its record; `stack` is none or one TakenStack.
  template <uint64_t (*Now)(), typename... Stack>
  [[gnu::always_inline]] static R record_call(const Scope& scope, P... args,
                                              const Stack&... stack) {
    t_state.correlation = 0;
    scope.enter();
    [[maybe_unused]] HeldPayload held;
    if constexpr (kHeld) {
      hold(held, args...);
      __asm__ volatile("" : "+m"(held));  // in memory, whatever the compiler thinks of it
    }
    const uint64_t begin = Now();
    const R result = real_.load(std::memory_order_relaxed)(args...);
    const uint64_t end = Now();
    scope.leave();
    if constexpr (kDriver) claim_runtime_call();
    if constexpr (sizeof...(Stack) != 0) {
      if (Record* const record = reserve_record_after(stack..., begin, end)) {
        look_for_silence((stack, ...).id ? record - 1 : record,
                         end);  // the stack has a record, too
        if constexpr (kHeld) {
          fill(*record, begin, end, result, held);
        } else {
          fill(*record, begin, end, result, args...);
        }
        commit_record(record);
      }
      return result;
    } else if constexpr (kHeld) {
      return write<R, const HeldPayload&>(begin, end, result, held);
    } else {
      return write<R, P...>(begin, end, result, args...);
    }
  }

  template <typename Result, typename... Kept>
  [[gnu::always_inline]] static R write(uint64_t begin, uint64_t end, Result result, Kept... kept) {
    if (Record* const record = try_reserve_record()) {
      const uint64_t last = record[-1].end;
      fill(*record, begin, end, result, kept...);
      commit_record(record);
      if (is_silence(last, end)) return after_silence(result, last, end);
      return result;
    }
    return write_to_new_buffer<R, Kept...>(begin, end, result, kept...);
  }

  // A function of its own, so that its calls do not cost the common case registers.
  template <typename Result, typename... Kept>
  [[gnu::noinline]] static R write_to_new_buffer(uint64_t begin, uint64_t end, Result result,
                                                 Kept... kept) {
    const uint64_t last = newest_record_end();
    if (Record* const record = reserve_record_slow()) {
      look_for_silence_in_new_buffer(last, end);
      fill(*record, begin, end, result, kept...);
      commit_record(record);
    }
    return result;
  }

  // Likewise, and the last that is done.
  template <typename Result>
  [[gnu::noinline]] static Result after_silence(Result result, uint64_t begin, uint64_t end) {
    note_silence(begin, end);
    return result;
  }

  template <typename Result, typename... Kept>
  [[gnu::always_inline]] static void fill(Record& record, uint64_t begin, uint64_t end,
                                          Result result, const Kept&... kept) {
    record.begin = begin;
    record.end = end;
    record.correlation = t_state.correlation;
    record.api = kId;
    record.kind = kRow.kind;
    record.flags = kDriver ? kFlagDriver : 0;
    if constexpr (kHeld) {
      release(record, kept..., result);
    } else {
      capture(record, KindTag<kRow.kind>{}, result, kept...);
    }
  }

  template <typename Result>
  static void fill_from(Record& record, uint64_t begin, uint64_t end, Result result, P... args) {
    if constexpr (kHeld) {
      HeldPayload held;
      hold(held, args...);
      fill(record, begin, end, result, held);
    } else {
      fill(record, begin, end, result, args...);
    }
  }

  // The call may become a node of a CUDA graph instead of work: then the record says so. Or it is
  // one of those that the memory log keeps, or that have CUDA events around them.
  static R call_with_record(const Scope& scope, uint8_t flags, bool& captured, P... args) {
    TakenStack stack;
    if (kCanHaveStack && flags & kHookStack) stack = take_stack(kId);
    Record record;
    [[maybe_unused]] LiveRow released{};
    if constexpr (kRow.kind == Kind::dealloc) {
      fill(record, 0, 0, R{}, args...);  // for the address
      if (flags & kHookMemory) released = log_release(record);
    }
    [[maybe_unused]] uint32_t events = kNoEvents;
    if constexpr (is_timed_by_events(kRow.kind)) {
      if (flags & kHookEvents) {
        fill_from(record, 0, 0, static_cast<R>(1), args...);  // for the stream, of no success
        events = events_before(record);
      }
    }
    t_state.correlation = 0;
    scope.enter();
    const uint64_t begin = now_ticks();
    const R result = call_real(args...);
    const uint64_t end = now_ticks();
    scope.leave();
    if constexpr (kDriver) claim_runtime_call();
    fill_from(record, begin, end, result, args...);
    if constexpr (is_timed_by_events(kRow.kind)) events_after(events, record);
    if (flags & kHookCapture) note_captured_call(record, stack.id);
    captured = record.flags & kFlagCaptured;
    if constexpr (kOfMemory) {
      if (flags & kHookMemory) log_memory_call(record, stack.id, released);
    }
    if (flags & kHookRecord) {
      if (Record* const place = reserve_record_after(stack, begin, end)) {
        look_for_silence(stack.id ? place - 1 : place, end);
        *place = record;
        commit_record(place);
      }
    }
    return result;
  }
#endif

  static R resolve_and_call(P... args) {
    void* const real = find_real(A);
    if (!real) return static_cast<R>(FailValue<kRow.library>::value);
    set(real);
#ifndef GPUPROF_NOP
    lead_copies_apart();
#endif
    return reinterpret_cast<Real>(real)(args...);
  }

  static inline constinit std::atomic<Real> real_{&resolve_and_call};
};

}  // namespace

// Exports `symbol` as an alias of the row's enter(): no jump in between. Must stand in a function
// that is emitted; the operand makes the compiler emit enter().
#if defined(__x86_64__)
#define GPUPROF_EXPORT_HOOK(symbol, ...)                                                \
  __asm__ volatile(".globl " #symbol "\n\t.type " #symbol ",@function\n\t.set " #symbol \
                   ",%P0" ::"i"(&Hook<Api::symbol, __VA_ARGS__>::enter))
#elif defined(__aarch64__)
#define GPUPROF_EXPORT_HOOK(symbol, ...)                                                 \
  __asm__ volatile(".globl " #symbol "\n\t.type " #symbol ",%%function\n\t.set " #symbol \
                   ",%c0" ::"S"(&Hook<Api::symbol, __VA_ARGS__>::enter))
#endif

// The slot of a row whose body is written by hand.
#define GPUPROF_FILL_HAND(symbol)                                                             \
  {                                                                                           \
    using RowHook = Hook<Api::symbol, decltype(::symbol)>;                                    \
    fill_slot(Api::symbol, reinterpret_cast<void*>(&::symbol), &RowHook::get, &RowHook::set); \
  }

}  // namespace gpuprof
