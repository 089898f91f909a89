// SPDX-License-Identifier: Apache-2.0
#include "collector/window/ready_command.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "collector/base/environment.h"
#include "collector/base/fork.h"
#include "collector/base/host.h"
#include "collector/base/log.h"
#include "collector/base/os.h"
#include "collector/record/session.h"
#include "collector/window/drain.h"
#include "formats/core/command_line.h"
#include "formats/core/text.h"

namespace gpuprof {
namespace {

constexpr size_t kStackBytes = 64 * 1024;
constexpr size_t kMostVariables = 4096;
constexpr size_t kMostRunning = 16;  // that the end of the program waits for
constexpr uint64_t kWaitAtEndMs = 30000, kSaidAfterMs = 2000;
constexpr const char* kNotPassedOn[] = {"LD_PRELOAD=", "CUDA_INJECTION64_PATH="};

// Shared with helper and command until exec: they run in this address space. What they call must
// neither lock nor allocate, and they see this thread's errno, so this thread waits meanwhile (but
// for the helper that stays, which then makes one system call after another until it ends).
struct Start {
  CommandLine command;
  char* variables[kMostVariables + 1];
  unsigned char* stacks;  // the helper's, then the command's until exec
  bool stays;
  bool waits;                     // the command, until the drain thread is gone
  std::atomic<uint32_t> done{0};  // the command has begun, or could not
  pid_t pid;
  int error;
};
constinit Start g_start{};
struct Helper {
  pid_t pid;
  void* stacks;
};
Helper g_helpers[kMostRunning];
pid_t g_running[kMostRunning];

// A command that waits. The kernel sets `tid` to 0 as it ends (CLONE_CHILD_CLEARTID), also as it
// becomes the command: then its stack is free.
struct Waiting {
  std::atomic<bool> cancelled;
  pid_t process, thread;  // while both are there exec may still fail
  pid_t tid;
  void* stacks;
};
constinit Waiting g_waiting{};

void choose_variables() {
  size_t count = 0;
  for (char* const* entry = kept_environment(); *entry && count < kMostVariables; ++entry) {
    bool passed = true;
    for (const char* const prefix : kNotPassedOn) passed = passed && !starts_with(*entry, prefix);
    if (passed) g_start.variables[count++] = *entry;
  }
  g_start.variables[count] = nullptr;
}

void close_all_but_standard() {
#ifndef SYS_close_range
  constexpr long SYS_close_range = 436;
#endif
  if (::syscall(SYS_close_range, 3u, ~0u, 0u) == 0) return;
  const long most = ::sysconf(_SC_OPEN_MAX);  // Linux before 5.9
  for (int file = 3; file < (most > 0 && most < 65536 ? most : 65536); ++file) ::close(file);
}

// The program's handlers must not run here, in its memory.
void reset_handlers() {
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &standard, nullptr);
}

void let_signals_in() {
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// What the command says goes where our lines go, if anywhere: the program's standard output is its
// own, and so is a file that has the number of its standard error.
void choose_files() {
  const bool shows = !g_host.stderr_was_closed && ::fcntl(2, F_GETFD) >= 0;
  const int nothing = ::open("/dev/null", O_RDWR);
  if (nothing > 0) ::dup2(nothing, 0);
  for (const int file : {1, 2}) {
    if (::dup2(shows ? 2 : nothing, file) < 0) ::close(file);
  }
  close_all_but_standard();
}

// Returns once exec has replaced the program, or it has ended: exec ends all its other threads. No
// call in here fails while the drain thread is there, so that its errno stays.
void wait_for_exec() {
  g_start.done.store(1, std::memory_order_release);
  const timespec pause{0, 1000000};
  do {
    ::syscall(SYS_nanosleep, &pause, nullptr);
    if (g_waiting.cancelled.load(std::memory_order_acquire)) ::syscall(SYS_exit, 0);
  } while (::syscall(SYS_tgkill, g_waiting.process, g_waiting.thread, 0) == 0);
  if (g_waiting.cancelled.load(std::memory_order_acquire)) ::syscall(SYS_exit, 0);
}

// Nobody else is left to say it.
void say_not_there(int error) {
  char line[600];
  const int length = std::snprintf(
      line, sizeof line, "gpuprof: GPUPROF_ON_TRACE_READY: cannot run %.400s (errno %d)\n",
      g_start.command.words[0], error);
  ::syscall(SYS_write, 2, line, static_cast<size_t>(length));
}

// In a process of its own, which ends with it or becomes the command.
int become_command(void*) {
  choose_files();
  reset_handlers();
  if (g_start.waits) wait_for_exec();
  let_signals_in();
  char** const words = g_start.command.words;
  if (std::strchr(words[0], '/')) {
    ::syscall(SYS_execve, words[0], words, g_start.variables);
  } else {
    const char* path = find_in_environment(g_start.variables, "PATH");
    std::string_view rest = path ? path : "/usr/local/bin:/usr/bin:/bin";
    errno = ENOENT;
    while (!rest.empty()) {
      const std::string_view folder = take_until(rest, ':');
      char file[4096];
      const int length = std::snprintf(file, sizeof file, "%.*s/%s",
                                       static_cast<int>(folder.size()), folder.data(), words[0]);
      if (folder.empty() || length >= static_cast<int>(sizeof file)) continue;
      ::syscall(SYS_execve, file, words, g_start.variables);
      if (errno != ENOENT && errno != ENOTDIR && errno != EACCES) break;
    }
  }
  const int error = errno;
  if (g_start.waits) say_not_there(error);
  g_start.error = error;
  ::syscall(SYS_exit, 127);
  return 127;
}

int help(void*) {
  if (g_start.stays) {
    // Its memory is the program's: it must not keep that alive when the program is gone.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    close_all_but_standard();
    for (int file = 0; file < 3; ++file) {
      // The command has its own; a pipe's reader waits for nobody else.
      if (file != 2) ::close(file);
    }
  }
  constexpr int kAtOnce = CLONE_VM | CLONE_VFORK | SIGCHLD;
  constexpr int kWaits = CLONE_VM | CLONE_CHILD_CLEARTID | CLONE_PARENT_SETTID | SIGCHLD;
  const pid_t pid =
      ::clone(become_command, g_start.stacks + 2 * kStackBytes, g_start.waits ? kWaits : kAtOnce,
              nullptr, &g_waiting.tid, nullptr, &g_waiting.tid);
  if (pid < 0) g_start.error = errno;
  g_start.pid = pid;
  if (g_start.stays) {
    ::close(2);
    if (!g_start.waits || pid < 0) g_start.done.store(1, std::memory_order_release);
    int status = 0;
    while (::syscall(SYS_wait4, pid, &status, 0, nullptr) < 0 && errno == EINTR) {
    }
  }
  ::syscall(SYS_exit, 0);
  return 0;
}

// Whether a process has ended, as far as it matters: nobody may have reaped it yet.
bool has_ended(pid_t pid) {
  char path[64], text[512];
  std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
  if (!read_small_file(path, text, sizeof text)) return true;
  const char* const name_end = std::strrchr(text, ')');
  return !name_end || name_end[1] != ' ' || name_end[2] == 'Z' || name_end[2] == 'X';
}

// Forgets what has ended. Whether nothing runs any more.
bool look_at_running() {
  for (Helper& helper : g_helpers) {
    if (helper.pid <= 0 || ::waitpid(helper.pid, nullptr, WNOHANG | __WCLONE) == 0) continue;
    ::munmap(helper.stacks, 2 * kStackBytes);
    helper = {};
  }
  bool all_ended = true;
  for (pid_t& pid : g_running) {
    if (pid > 0 && has_ended(pid)) pid = 0;
    all_ended = all_ended && pid <= 0;
  }
  return all_ended;
}

// Beyond kMostRunning it is not waited for.
void remember_command(pid_t pid) {
  for (pid_t& place : g_running) {
    if (place > 0) continue;
    place = pid;
    return;
  }
}

void remember_helper(pid_t pid, void* stacks) {
  for (Helper& place : g_helpers) {
    if (place.pid > 0) continue;
    place = {pid, stacks};
    return;
  }
}

void await_start() {
  // No futex: its errno would be the helper's, too.
  while (g_start.done.load(std::memory_order_acquire) == 0) ::usleep(1000);
}

// False: no memory or no process; g_start.error tells.
bool start_helper() {
  // A helper that stays needs its stack for as long; the others give theirs back at once.
  void* const memory = ::mmap(nullptr, 2 * kStackBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) {
    g_start.error = errno;
    return false;
  }
  g_start.stacks = static_cast<unsigned char*>(memory);
  const int flags = g_start.stays ? CLONE_VM : CLONE_VM | CLONE_VFORK;
  const pid_t helper = ::clone(help, g_start.stacks + kStackBytes, flags, nullptr);
  if (helper < 0) {
    g_start.error = errno;
    ::munmap(memory, 2 * kStackBytes);
    return false;
  }
  if (g_start.stays) {
    await_start();
    remember_helper(helper, memory);
  } else {
    ::waitpid(helper, nullptr, __WCLONE);
    if (g_start.waits && g_start.error == 0) {
      await_start();
      g_waiting.stacks = memory;
    } else {
      ::munmap(memory, 2 * kStackBytes);
    }
  }
  return true;
}

// Whether nothing uses what a command starts with.
bool no_command_waits() {
  constexpr int kLongestMs = 1000;
  const std::atomic_ref<pid_t> tid(g_waiting.tid);
  for (int waited = 0; tid.load(std::memory_order_acquire) != 0; ++waited) {
    if (waited == kLongestMs) return false;
    ::usleep(1000);
  }
  if (g_waiting.stacks) ::munmap(g_waiting.stacks, 2 * kStackBytes);
  g_waiting.stacks = nullptr;
  return true;
}

void start_command(const char* path, bool waits) {
  const Session& s = session();
  if (!s.config.on_trace_ready[0]) return;
  cancel_ready_command();
  if (!no_command_waits()) {
    log_line(LogLevel::warn, "GPUPROF_ON_TRACE_READY: the command for %s could not be started",
             path);
    return;
  }
  look_at_running();
  const char* problem = nullptr;
  if (!split_command(s.config.on_trace_ready, path, g_start.command, &problem)) {
    log_line(LogLevel::warn, "GPUPROF_ON_TRACE_READY %s", problem);
    return;
  }
  choose_variables();
  int subreaper = 0;
  ::prctl(PR_GET_CHILD_SUBREAPER, &subreaper);
  g_start.stays = subreaper != 0 || ::getpid() == 1;
  g_start.waits = waits;
  g_waiting.cancelled.store(false);
  g_waiting.process = static_cast<pid_t>(s.pid);
  g_waiting.thread = static_cast<pid_t>(current_tid());
  g_start.done.store(0);
  g_start.pid = 0;
  g_start.error = 0;
  if (start_helper() && g_start.error == 0) {
    if (!waits) remember_command(g_start.pid);
    return;
  }
  log_line(LogLevel::warn, "GPUPROF_ON_TRACE_READY: cannot run %s: %s", g_start.command.words[0],
           std::strerror(g_start.error));
}

}  // namespace

void run_ready_command(const char* path) { start_command(path, false); }
void run_ready_command_after_exec(const char* path) { start_command(path, true); }

void cancel_ready_command() { g_waiting.cancelled.store(true, std::memory_order_release); }

void wait_for_ready_commands() {
  cancel_ready_command();
  for (uint64_t waited_ms = 0; waited_ms < kWaitAtEndMs; waited_ms += 10) {
    if (look_at_running()) return;
    if (waited_ms == kSaidAfterMs) {
      log_line(LogLevel::info,
               "the end waits for the command of GPUPROF_ON_TRACE_READY, which runs still: %llu s "
               "at most",
               static_cast<unsigned long long>(kWaitAtEndMs / 1000));
    }
    ::usleep(10000);
    drain_note_progress();
  }
  log_line(LogLevel::warn,
           "the command of GPUPROF_ON_TRACE_READY still runs after %llu s, and is left alone",
           static_cast<unsigned long long>(kWaitAtEndMs / 1000));
}

namespace {
void forget_ready_commands() {
  for (size_t i = 0; i < kMostRunning; ++i) {
    g_helpers[i] = {};
    g_running[i] = 0;
  }
  g_waiting.tid = 0;
  g_waiting.stacks = nullptr;
  g_waiting.cancelled.store(false);
}
GPUPROF_FORGET_IN_CHILD(forget_ready_commands);
}  // namespace

}  // namespace gpuprof
