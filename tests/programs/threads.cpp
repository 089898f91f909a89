// SPDX-License-Identifier: Apache-2.0
// Hazard: threads that come and go, die late, have hardly any stack, or call CUDA from their last
// destructors.
#include <limits.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/programs/hazard.h"

namespace {

int many(int, char**) {
  hazard_steps(1, 1);
  for (int batch = 0; batch < 125; ++batch) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) threads.emplace_back([] { hazard_launch(3, nullptr); });
    for (auto& thread : threads) thread.join();
  }
  hazard_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  std::printf("1000 threads\n");
  return 0;
}

int detached(int, char**) {
  hazard_steps(1, 1);
  static std::atomic<int> started{0};
  for (int i = 0; i < 8; ++i) {
    std::thread([] {
      hazard_launch(5, nullptr);
      ++started;
      pause();  // alive when the process ends
    }).detach();
  }
  while (started < 8) usleep(1000);
  std::printf("8 threads wait\n");
  return 2;
}

void* launch_three(void*) {
  hazard_launch(3, nullptr);
  return nullptr;
}

int small_stacks(int, char**) {
  hazard_steps(1, 1);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  // The minimum, and what the simulated CUDA itself needs for a launch.
  pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN + 16384);
  for (int i = 0; i < 20; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, &attributes, launch_three, nullptr) != 0) return 91;
    pthread_join(thread, nullptr);
  }
  std::printf("20 small threads\n");
  return 0;
}

int deep(int depth) {
  volatile char frame[4096];
  frame[0] = static_cast<char>(depth);
  if (depth == 0) {
    hazard_launch(3, nullptr);
    return 0;
  }
  return deep(depth - 1) + (frame[0] != static_cast<char>(depth));
}

int big_stack(int, char**) {
  hazard_steps(1, 1);
  std::printf("deep: %d\n", deep(1700));  // about 7 of the usual 8 MB
  return 0;
}

pthread_key_t key;

void launch_at_exit(void* value) {
  hazard_launch(1, nullptr);
  // Again, up to the limit: destructors that run after everybody else's.
  if (static_cast<char*>(value)[0]-- > 0) pthread_setspecific(key, value);
}

struct LaunchesLate {
  ~LaunchesLate() { hazard_launch(1, nullptr); }
  int touched = 0;
};
thread_local LaunchesLate late;

int tls_destructors(int, char**) {
  hazard_steps(1, 1);
  pthread_key_create(&key, launch_at_exit);
  for (int i = 0; i < 10; ++i) {
    std::thread([] {
      late.touched = 1;
      static thread_local char rounds[1];
      rounds[0] = 2;
      pthread_setspecific(key, rounds);
      hazard_launch(2, nullptr);
    }).join();
  }
  hazard_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  std::printf("10 threads with destructors\n");
  return 0;
}

void* launch_until_cancelled(void*) {
  hazard_launch(4, nullptr);
  for (;;) {
    pthread_testcancel();
    usleep(100);
  }
}

int cancelled(int, char**) {
  hazard_steps(1, 1);
  for (int i = 0; i < 10; ++i) {
    pthread_t thread;
    void* result = nullptr;
    pthread_create(&thread, nullptr, launch_until_cancelled, nullptr);
    usleep(5000);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    if (result != PTHREAD_CANCELED) return 91;
  }
  std::printf("10 threads cancelled\n");
  return 0;
}

// The first CUDA call of the process comes from many threads at once.
int first_call_race(int, char**) {
  std::vector<std::thread> threads;
  std::atomic<int> ready{0};
  hazard_register_kernel();
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&ready] {
      ++ready;
      while (ready < 16) {
      }
      hazard_launch(5, nullptr);
    });
  }
  for (auto& thread : threads) thread.join();
  hazard_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  std::printf("16 threads at once\n");
  return 0;
}

// Threads come one after the other, each to its first CUDA call: while the first one's is not over.
int one_by_one(int, char**) {
  std::vector<std::thread> threads;
  hazard_register_kernel();
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([] { hazard_launch(5, nullptr); });
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
  }
  for (auto& thread : threads) thread.join();
  hazard_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  std::printf("16 threads one by one\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const hazard_case cases[] = {
      {"many", many},
      {"detached", detached},
      {"small_stack", small_stacks},
      {"big_stack", big_stack},
      {"tls_destructor", tls_destructors},
      {"cancel", cancelled},
      {"first_call", first_call_race},
      {"one_by_one", one_by_one},
  };
  return hazard_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
