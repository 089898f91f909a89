// SPDX-License-Identifier: Apache-2.0
#include "tools/child.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <iterator>
#include <optional>

#include "tools/console.h"

namespace gpuprof {
namespace {

constexpr int kPassedOn[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

volatile sig_atomic_t child_pid = 0;

void pass_on(int signal, siginfo_t* info, void*) {
  // The terminal (the kernel: si_code > 0) sends to the whole foreground group, the child included.
  const int saved = errno;
  if (info->si_code <= 0 && child_pid > 0) kill(child_pid, signal);
  errno = saved;
}

sigset_t passed_on_set() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kPassedOn) sigaddset(&set, signal);
  return set;
}

// Signals go to the child while this is alive. Made after the fork: the child keeps the
// dispositions that this process was started with (nohup).
class PassingOn {
 public:
  explicit PassingOn(pid_t pid) {
    child_pid = pid;
    for (size_t i = 0; i < std::size(kPassedOn); ++i) {
      struct sigaction action {};
      action.sa_sigaction = pass_on;
      action.sa_flags = SA_SIGINFO | SA_RESTART;
      sigfillset(&action.sa_mask);
      sigaction(kPassedOn[i], &action, &before_[i]);
    }
  }
  ~PassingOn() {
    child_pid = 0;
    for (size_t i = 0; i < std::size(kPassedOn); ++i) {
      sigaction(kPassedOn[i], &before_[i], nullptr);
    }
  }
  PassingOn(const PassingOn&) = delete;
  PassingOn& operator=(const PassingOn&) = delete;

 private:
  struct sigaction before_[std::size(kPassedOn)] = {};
};

// The child's errno when exec failed, or 0 when it went well (the pipe closed on exec).
int read_exec_error(int pipe) {
  int error = 0;
  ssize_t count;
  do {
    count = read(pipe, &error, sizeof(error));
  } while (count < 0 && errno == EINTR);
  close(pipe);
  return count == sizeof(error) ? error : 0;
}

bool is_missing(int error) { return error == ENOENT || error == ENOTDIR; }

std::string why_not_started(const std::string& name, int error) {
  if (is_missing(error) && name.find('/') == std::string::npos) return "command not found in PATH";
  if (error == ENOENT && access(name.c_str(), F_OK) == 0)
    return "the interpreter it names is not there";
  return std::strerror(error);
}

ChildEnd wait_for(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return {1, 0, pid, true};
  }
  if (!WIFSIGNALED(status)) return {WEXITSTATUS(status), 0, pid, true};
  return {128 + WTERMSIG(status), WTERMSIG(status), pid, true};
}

}  // namespace

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

ChildEnd run_child(const std::vector<std::string>& command,
                   const std::vector<std::string>& environment) {
  const std::vector<char*> arguments = pointers(command);
  const std::vector<char*> variables = pointers(environment);
  int channel[2];
  if (pipe2(channel, O_CLOEXEC) != 0) throw Failure(fmt::format("pipe: {}", std::strerror(errno)));
  const sigset_t held = passed_on_set();
  sigset_t before;
  // Where this process was started with SIGCHLD ignored, the kernel would keep no child's exit
  // code. The child goes on so.
  struct sigaction kept {
  }, usual{};
  usual.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &usual, &kept);
  sigprocmask(SIG_BLOCK, &held, &before);  // none is lost before there is a child to pass it to
  const pid_t pid = fork();
  if (pid == 0) {
    sigaction(SIGCHLD, &kept, nullptr);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    execvpe(arguments[0], arguments.data(), variables.data());
    const int error = errno;
    [[maybe_unused]] const ssize_t written = write(channel[1], &error, sizeof(error));
    _exit(127);
  }
  const int fork_error = errno;
  close(channel[1]);
  std::optional<PassingOn> passing_on;
  if (pid > 0) passing_on.emplace(pid);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) {
    close(channel[0]);
    throw Failure(fmt::format("fork: {}", std::strerror(fork_error)));
  }
  const int error = read_exec_error(channel[0]);
  const ChildEnd end = wait_for(pid);
  passing_on.reset();
  if (error == 0) return end;
  print_error(fmt::format("run: {}: {}", command[0], why_not_started(command[0], error)));
  return {is_missing(error) ? 127 : 126, 0, pid, false};
}

}  // namespace gpuprof
