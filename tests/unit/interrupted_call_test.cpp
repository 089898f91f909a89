// SPDX-License-Identifier: Apache-2.0
#include "collector/interrupted_call.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <functional>
#include <thread>

namespace gpuprof {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

std::atomic<int> g_handled{0};

void on_signal(int, siginfo_t*, void* context) {
  ++g_handled;
  make_interrupted_call_again(context);
}

struct Outcome {
  int result, error, handled;
  milliseconds took;
};

// What a call of 300 ms gives whose thread gets a signal after 100.
Outcome interrupted(const std::function<int()>& call) {
  struct sigaction action {
  }, before{};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO;
  EXPECT_EQ(::sigaction(SIGURG, &action, &before), 0);
  g_handled = 0;
  const pthread_t caller = ::pthread_self();
  const auto begun = steady_clock::now();
  std::thread sender([caller] {
    std::this_thread::sleep_for(milliseconds(100));
    ::pthread_kill(caller, SIGURG);
  });
  errno = 0;
  const int result = call();
  const int error = errno;
  const auto took = std::chrono::duration_cast<milliseconds>(steady_clock::now() - begun);
  sender.join();
  ::sigaction(SIGURG, &before, nullptr);
  return {result, error, g_handled, took};
}

const timespec kTime{0, 300'000'000};

TEST(InterruptedCall, IsMadeAgain) {
  const int events = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{};
  const std::pair<const char*, std::function<int()>> calls[] = {
      {"poll", [] { return ::poll(nullptr, 0, 300); }},
      {"ppoll", [] { return ::ppoll(nullptr, 0, &kTime, nullptr); }},
      {"select",
       [] {
         timeval time{0, 300'000};
         return ::select(0, nullptr, nullptr, nullptr, &time);
       }},
      {"epoll_wait", [&] { return ::epoll_wait(events, &event, 1, 300); }},
      {"nanosleep", [] { return ::nanosleep(&kTime, nullptr); }},
      {"clock_nanosleep", [] { return ::clock_nanosleep(CLOCK_MONOTONIC, 0, &kTime, nullptr); }}};
  for (const auto& [name, call] : calls) {
    const Outcome seen = interrupted(call);
    EXPECT_EQ(std::pair(seen.result, seen.handled), std::pair(0, 1)) << name << " " << seen.error;
    EXPECT_GE(seen.took, milliseconds(290)) << name;
  }
  ::close(events);
}

// Their callers wait for signals, too.
TEST(InterruptedCall, ThatLetsSignalsInEndsAsItDoes) {
  sigset_t mask;
  ::sigemptyset(&mask);
  ::sigaddset(&mask, SIGUSR2);
  const int events = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{};
  const std::pair<const char*, std::function<int()>> calls[] = {
      {"ppoll", [&] { return ::ppoll(nullptr, 0, &kTime, &mask); }},
      {"pselect", [&] { return ::pselect(0, nullptr, nullptr, nullptr, &kTime, &mask); }},
      {"epoll_pwait", [&] { return ::epoll_pwait(events, &event, 1, 300, &mask); }},
      {"pause", [] { return ::pause(); }}};
  for (const auto& [name, call] : calls) {
    const Outcome seen = interrupted(call);
    EXPECT_EQ(std::tuple(seen.result, seen.error, seen.handled), std::tuple(-1, EINTR, 1)) << name;
    EXPECT_LT(seen.took, milliseconds(290)) << name;
  }
  ::close(events);
}

}  // namespace
}  // namespace gpuprof
