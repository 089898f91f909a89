// SPDX-License-Identifier: Apache-2.0
// Hazard: C++ exceptions and longjmp past frames that call CUDA, and across a library. A profiler
// that links an unwinder or a C++ runtime of its own breaks these.
#include <setjmp.h>

#include <stdexcept>
#include <string>

#include "tests/programs/hazard.h"

void throw_from_library(int depth);  // hazard_throw.cpp, in a library of its own

namespace {

struct LaunchesWhenUnwound {
  ~LaunchesWhenUnwound() { hazard_launch(1, nullptr); }
};

int throw_deep(int depth) {
  LaunchesWhenUnwound guard;
  if (depth == 0) throw std::runtime_error("from the bottom");
  return throw_deep(depth - 1) + 1;
}

int exceptions(int, char**) {
  hazard_steps(1, 1);
  int caught = 0;
  std::string last;
  for (int i = 0; i < 100; ++i) {
    try {
      if (i % 2 == 0) throw_deep(20);
      throw_from_library(20);
    } catch (const std::exception& error) {
      ++caught;
      last = error.what();
    }
  }
  std::printf("caught %d, the last %s\n", caught, last.c_str());
  return 0;
}

int uncaught(int, char**) {
  hazard_steps(2, 5);
  std::printf("before\n");
  std::fflush(stdout);
  throw std::runtime_error("nobody catches this");
}

jmp_buf target;

void jump(int depth) {
  hazard_launch(1, nullptr);
  if (depth < 0) return;  // never: tells the compiler that this ends
  if (depth > 0) jump(depth - 1);
  longjmp(target, 1);
}

int jumps(int, char**) {
  static int tried = 0, jumped = 0;  // static: locals may be lost to longjmp
  hazard_steps(1, 1);
  for (; tried < 100; ++tried) {
    if (setjmp(target) == 0) {
      jump(9);
    } else {
      ++jumped;
    }
  }
  std::printf("jumped %d\n", jumped);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const hazard_case cases[] = {
      {"exceptions", exceptions}, {"uncaught", uncaught}, {"longjmp", jumps}};
  return hazard_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
