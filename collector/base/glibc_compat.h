// SPDX-License-Identifier: Apache-2.0
// Included before every file of the preloaded library. glibc 2.34 moved libpthread and
// libdl into libc and gave their functions new symbol versions. An older ld.so ignores a library
// that asks for those. The old versions are still there under the old number.
//
// They are weak, so that the library names neither libpthread nor libdl: a newer ld.so would open
// two empty files in every process. An older one finds them where the program has those libraries;
// in a program that was started without them the library does nothing (has_libc(), libc.h).
#pragma once

#include <features.h>

#if __GLIBC_PREREQ(2, 34)
#if defined(__x86_64__)
#define GPUPROF_FIRST_GLIBC "GLIBC_2.2.5"  // what every glibc of this architecture has
#define GPUPROF_GLIBC_2_3_3 "GLIBC_2.3.3"
#elif defined(__aarch64__)
#define GPUPROF_FIRST_GLIBC "GLIBC_2.17"
#define GPUPROF_GLIBC_2_3_3 "GLIBC_2.17"
#endif
#define GPUPROF_PRAGMA(text) _Pragma(#text)
#define GPUPROF_OLD_SYMBOL(name, version) \
  GPUPROF_PRAGMA(weak name)               \
  __asm__(".symver " #name "," #name "@" version)
GPUPROF_OLD_SYMBOL(pthread_create, GPUPROF_FIRST_GLIBC);
GPUPROF_OLD_SYMBOL(pthread_key_create, GPUPROF_FIRST_GLIBC);
GPUPROF_OLD_SYMBOL(pthread_setspecific, GPUPROF_FIRST_GLIBC);
GPUPROF_OLD_SYMBOL(pthread_attr_setstacksize, GPUPROF_FIRST_GLIBC);
GPUPROF_OLD_SYMBOL(dlopen, GPUPROF_FIRST_GLIBC);
GPUPROF_OLD_SYMBOL(dlclose, GPUPROF_FIRST_GLIBC);
GPUPROF_OLD_SYMBOL(dlinfo, GPUPROF_GLIBC_2_3_3);
GPUPROF_OLD_SYMBOL(dladdr, GPUPROF_FIRST_GLIBC);
GPUPROF_OLD_SYMBOL(dladdr1, GPUPROF_GLIBC_2_3_3);
GPUPROF_OLD_SYMBOL(dlerror, GPUPROF_FIRST_GLIBC);
#undef GPUPROF_OLD_SYMBOL
#undef GPUPROF_GLIBC_2_3_3
#undef GPUPROF_PRAGMA
#endif
