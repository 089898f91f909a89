// SPDX-License-Identifier: Apache-2.0
// The ways a process ends or becomes another program without running exit handlers, and the one
// environment variable that we answer for.
#include "preload/process_hooks.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <cstring>

#include "collector/base/host.h"
#include "collector/base/idle.h"
#include "collector/record/collector.h"
#include "preload/export.h"
#include "preload/named_hook.h"
#include "preload/objects/elf_symbols.h"

namespace {

// What runs without us. Not by dlsym: these functions may be called by a signal handler, or while
// another thread is within dlopen, whose lock dlsym waits for.
template <typename Function>
[[gnu::always_inline]] inline Function next(const char* name) {
  return reinterpret_cast<Function>(gpuprof::symbol_after_own(name));
}

[[noreturn]] void end_now(int status) {
  // The next one is out of reach only if no library can be walked; the kernel's always is there.
  for (;;) ::syscall(SYS_exit_group, status);
}

// exec replaces the program: what was recorded must be on disk before. A vfork child shares our
// memory and is not us: the collector sees that by the process id.
template <typename Function, typename... Arguments>
[[gnu::always_inline]] inline int exec_by(Function* real, Arguments... arguments) {
  const bool saved = gpuprof::save_before_exec();
  const int result = real(arguments...);
  if (saved) gpuprof::go_on_after_failed_exec();
  return result;
}

template <typename Function, typename... Arguments>
[[gnu::always_inline]] inline int exec_with(const char* name, Function*, Arguments... arguments) {
  if (Function* const real = next<Function*>(name)) return exec_by(real, arguments...);
  errno = ENOSYS;
  return -1;
}

}  // namespace

#define GPUPROF_C extern "C" GPUPROF_EXPORT GPUPROF_IDLE_CODE

GPUPROF_C void _exit(int status) {
  gpuprof::finish_session("exit");
  if (const auto real = next<void (*)(int)>("_exit")) real(status);
  end_now(status);
}

GPUPROF_C void _Exit(int status) noexcept {
  gpuprof::finish_session("exit");
  if (const auto real = next<void (*)(int)>("_Exit")) real(status);
  end_now(status);
}

GPUPROF_C void quick_exit(int status) noexcept {
  gpuprof::finish_session("exit");
  if (const auto real = next<void (*)(int)>("quick_exit")) real(status);
  end_now(status);
}

GPUPROF_C int execve(const char* path, char* const arguments[], char* const variables[]) noexcept {
  return exec_with("execve", &execve, path, arguments, variables);
}

GPUPROF_C int execv(const char* path, char* const arguments[]) noexcept {
  return exec_with("execv", &execv, path, arguments);
}

GPUPROF_C int execvp(const char* file, char* const arguments[]) noexcept {
  return exec_with("execvp", &execvp, file, arguments);
}

GPUPROF_C int execvpe(const char* file, char* const arguments[], char* const variables[]) noexcept {
  return exec_with("execvpe", &execvpe, file, arguments, variables);
}

GPUPROF_C int fexecve(int file, char* const arguments[], char* const variables[]) noexcept {
  return exec_with("fexecve", &fexecve, file, arguments, variables);
}

// By the system call where libc has none (before glibc 2.34), as libc's own does.
static int execveat_by_kernel(int directory, const char* path, char* const arguments[],
                              char* const variables[], int flags) noexcept {
  return static_cast<int>(::syscall(SYS_execveat, directory, path, arguments, variables, flags));
}

extern "C" GPUPROF_EXPORT int execveat(int directory, const char* path, char* const arguments[],
                                       char* const variables[], int flags) noexcept {
  const auto found = next<decltype(&execveat_by_kernel)>("execveat");
  return exec_by(found ? found : &execveat_by_kernel, directory, path, arguments, variables, flags);
}

// The variadic forms become arrays on the caller's stack, as libc's own do.
#define GPUPROF_COLLECT_ARGUMENTS(first)                                                       \
  std::va_list list;                                                                           \
  va_start(list, first);                                                                       \
  size_t count = 1;                                                                            \
  while (va_arg(list, char*)) ++count;                                                         \
  va_end(list);                                                                                \
  char** const arguments = static_cast<char**>(__builtin_alloca((count + 1) * sizeof(char*))); \
  va_start(list, first);                                                                       \
  arguments[0] = const_cast<char*>(first);                                                     \
  for (size_t i = 1; i <= count; ++i) arguments[i] = va_arg(list, char*)

GPUPROF_C int execl(const char* path, const char* first, ...) noexcept {
  GPUPROF_COLLECT_ARGUMENTS(first);
  va_end(list);
  return execv(path, arguments);
}

GPUPROF_C int execlp(const char* file, const char* first, ...) noexcept {
  GPUPROF_COLLECT_ARGUMENTS(first);
  va_end(list);
  return execvp(file, arguments);
}

GPUPROF_C int execle(const char* path, const char* first, ...) noexcept {
  GPUPROF_COLLECT_ARGUMENTS(first);
  char* const* const variables = va_arg(list, char* const*);
  va_end(list);
  return execve(path, arguments, variables);
}

#undef GPUPROF_COLLECT_ARGUMENTS

// Its own address once ld.so has relocated this library, which comes after those it stands before.
static const void* const volatile g_relocated = const_cast<const void**>(&g_relocated);

// NVTX asks for NVTX_INJECTION64_PATH at its first use in each library. We never change the
// environment; where the user has not set it, the answer is this library. All else as without us.
GPUPROF_C char* getenv(const char* name) noexcept {
  // The resolver of an IFUNC, in a library that is relocated before this one. libc knows of no
  // environment yet either.
  if (g_relocated != const_cast<const void**>(&g_relocated)) return nullptr;
  using Get = char* (*)(const char*);
  GPUPROF_IDLE_DATA static constinit std::atomic<Get> real{nullptr};
  Get get = real.load(std::memory_order_acquire);
  if (!get) {
    get = next<Get>("getenv");
    real.store(get, std::memory_order_release);
  }
  char* const value = get ? get(name) : nullptr;
  if (std::strcmp(name, "NVTX_INJECTION64_PATH") != 0) return value;
  if (value) {
    if (*value) gpuprof::g_host.nvtx_goes_elsewhere.store(true, std::memory_order_relaxed);
    return value;
  }
  return gpuprof::wants_injection() ? const_cast<char*>(gpuprof::g_host.own_path()) : nullptr;
}

#undef GPUPROF_C

namespace gpuprof {

void* process_hook(const char* name) {
  const NamedHook hooks[] = {
      GPUPROF_NAMED_HOOK(_exit),   GPUPROF_NAMED_HOOK(_Exit),   GPUPROF_NAMED_HOOK(quick_exit),
      GPUPROF_NAMED_HOOK(execve),  GPUPROF_NAMED_HOOK(execv),   GPUPROF_NAMED_HOOK(execvp),
      GPUPROF_NAMED_HOOK(execvpe), GPUPROF_NAMED_HOOK(fexecve), GPUPROF_NAMED_HOOK(execveat),
      GPUPROF_NAMED_HOOK(execl),   GPUPROF_NAMED_HOOK(execlp),  GPUPROF_NAMED_HOOK(execle),
      GPUPROF_NAMED_HOOK(getenv)};
  return find_named_hook(hooks, name);
}

}  // namespace gpuprof
