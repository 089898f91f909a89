// SPDX-License-Identifier: Apache-2.0
#include "tools/show/browser.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "tools/program_file.h"

namespace gpuprof {
namespace {

bool is_set(const char* name) {
  const char* const value = std::getenv(name);
  return value && *value;
}

// A browser that is there, or that hands the page to one, goes on or ends with 0.
bool has_taken(pid_t pid) {
  constexpr std::chrono::milliseconds kPatience{1000}, kPause{10};
  for (std::chrono::milliseconds waited{0}; waited < kPatience; waited += kPause) {
    int status = 0;
    const pid_t ended = ::waitpid(pid, &status, WNOHANG);
    if (ended == pid) return WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (ended < 0 && errno != EINTR) return true;
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

// Runs without our output, which is for messages.
bool start(const std::string& program, const std::string& address) {
  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  posix_spawn_file_actions_addopen(&quiet, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&quiet, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&quiet, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  char* const arguments[] = {const_cast<char*>(program.c_str()), const_cast<char*>(address.c_str()),
                             nullptr};
  pid_t pid = 0;
  const int failed = ::posix_spawn(&pid, program.c_str(), &quiet, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&quiet);
  return failed == 0 && has_taken(pid);
}

}  // namespace

bool is_remote_session() {
  return (is_set("SSH_CONNECTION") || is_set("SSH_TTY")) && !is_set("BROWSER") &&
         !is_set("DISPLAY") && !is_set("WAYLAND_DISPLAY");
}

bool start_browser(const std::string& address) {
  const bool display = is_set("DISPLAY") || is_set("WAYLAND_DISPLAY") || is_set("WSL_DISTRO_NAME");
  std::vector<std::string> candidates;
  if (is_set("BROWSER")) candidates.push_back(std::getenv("BROWSER"));
  if (display) candidates.insert(candidates.end(), {"xdg-open", "wslview", "sensible-browser"});
  for (const std::string& name : candidates) {
    const std::string path = find_program(name);
    if (!path.empty() && ::access(path.c_str(), X_OK) == 0 && start(path, address)) return true;
  }
  return false;
}

std::string forwarding_command(unsigned port) {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  return fmt::format("ssh -L {}:127.0.0.1:{} {}", port, port, host);
}

}  // namespace gpuprof
