// SPDX-License-Identifier: Apache-2.0
// CUPTI by the names of its functions, as a program that loads it late has it; errors end the
// program. PROGRAM is the name that they are said with.
#pragma once

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

extern "C" __global__ void tiny() {}

static void check(int error, const char* what) {
  if (error == 0) return;
  std::fprintf(stderr, PROGRAM ": %s: error %d\n", what, error);
  std::exit(1);
}

template <typename Function>
static Function cupti(const char* name) {
  static void* const library = dlopen("libcupti.so.13", RTLD_NOW | RTLD_GLOBAL);
  void* const found = library ? dlsym(library, name) : nullptr;
  if (found) return reinterpret_cast<Function>(found);
  std::fprintf(stderr, PROGRAM ": no %s: %s\n", name, dlerror());
  std::exit(2);
}
#define CUPTI(name) cupti<decltype(&name)>(#name)
