// SPDX-License-Identifier: Apache-2.0
#include "collector/base/libraries.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace {
thread_local int t_walks = 0;  // that this thread is in
int g_opened = 0, g_opened_within_walk = 0;
}  // namespace

// Between the code that is tested and libc.
extern "C" int dl_iterate_phdr(int (*visit)(dl_phdr_info*, size_t, void*), void* context) {
  using Walk = int (*)(int (*)(dl_phdr_info*, size_t, void*), void*);
  static const auto real = reinterpret_cast<Walk>(::dlsym(RTLD_NEXT, "dl_iterate_phdr"));
  ++t_walks;
  const int result = real(visit, context);
  --t_walks;
  return result;
}

extern "C" void* dlopen(const char* file, int flags) {
  static const auto real =
      reinterpret_cast<void* (*)(const char*, int)>(::dlsym(RTLD_NEXT, "dlopen"));
  ++g_opened;
  if (t_walks > 0) ++g_opened_within_walk;
  return real(file, flags);
}

namespace gpuprof {
namespace {

// glibc's dlopen takes the lock of loading and then that of the list, in which a walk is: whoever
// opens something within a walk and whoever loads something meanwhile would wait for each other.
TEST(Libraries, OpensALoadedOneAfterTheWalk) {
  void* const found = loaded_library("libc.so");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(real_symbol(found, "getpid"), ::dlsym(RTLD_DEFAULT, "getpid"));
  EXPECT_GT(g_opened, 0);
  EXPECT_EQ(g_opened_within_walk, 0);
}

TEST(Libraries, OpensNoneThatIsNotLoaded) {
  const int before = g_opened;
  EXPECT_EQ(loaded_library("libno_such_library.so"), nullptr);
  EXPECT_EQ(g_opened, before);
}

}  // namespace
}  // namespace gpuprof
