// SPDX-License-Identifier: Apache-2.0
#include "collector/base/log.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <ctime>
#include <initializer_list>

#include "collector/base/cancel_guard.h"
#include "collector/base/host.h"
#include "collector/base/os.h"
#include "formats/core/terminal_text.h"
#include "formats/core/text.h"

namespace gpuprof {
namespace {

LogLevel g_level = LogLevel::info;
int g_rank = -1;
bool g_informs = true;

// write(2) would raise SIGPIPE in the host's thread on a pipe that nobody reads, and SIGXFSZ on a
// file that may not grow. Those that were pending before are the host's, and stay. SIGTTOU stops a
// background program whose terminal has `tostop`, but is not raised while it is blocked.
void write_quietly(const char* text, size_t size) {
  sigset_t raised, before, pending;
  sigemptyset(&raised);
  for (const int signal : {SIGPIPE, SIGXFSZ, SIGTTOU}) sigaddset(&raised, signal);
  ::sigprocmask(SIG_BLOCK, &raised, &before);  // on Linux: of this thread
  ::sigpending(&pending);
  sigdelset(&raised, SIGTTOU);
  for (const int signal : {SIGPIPE, SIGXFSZ}) {
    if (sigismember(&pending, signal)) sigdelset(&raised, signal);
  }
  for (size_t sent = 0; sent < size;) {
    const ssize_t wrote = ::write(STDERR_FILENO, text + sent, size - sent);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && (errno == EPIPE || errno == EFBIG)) {
      const timespec none{};
      ::sigtimedwait(&raised, nullptr, &none);
    }
    if (wrote <= 0) break;
    sent += static_cast<size_t>(wrote);
  }
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
}

// As one line: paths, settings and names come from elsewhere.
void write_escaped(std::string_view text) {
  char line[2400];
  TextBuilder out(line, sizeof line - 1);
  escape_for_terminal(text, Layout::one_line, [&](std::string_view piece) { out.add(piece); });
  const size_t size = out.size();
  line[size] = '\n';
  write_quietly(line, size + 1);
}

}  // namespace

void log_set(LogLevel level, int rank, bool informs) {
  g_level = level;
  g_rank = rank;
  g_informs = informs;
}

void log_line(LogLevel level, const char* format, ...) {
  if (level > g_level) return;
  if (level >= LogLevel::info && !g_informs) return;
  if (g_host.stderr_was_closed) return;
  const ErrnoGuard keep_errno;
  const CancelGuard goes_on;
  char line[2048];
  int used = level <= LogLevel::warn && g_rank > 0
                 ? std::snprintf(line, sizeof line, "gpuprof: rank %d: ", g_rank)
                 : std::snprintf(line, sizeof line, "gpuprof: ");
  va_list arguments;
  va_start(arguments, format);
  const int more =
      std::vsnprintf(line + used, sizeof line - 1 - static_cast<size_t>(used), format, arguments);
  va_end(arguments);
  if (more < 0) return;
  used += more;
  if (used > static_cast<int>(sizeof line) - 2) used = static_cast<int>(sizeof line) - 2;
  write_escaped({line, static_cast<size_t>(used)});
}

}  // namespace gpuprof
