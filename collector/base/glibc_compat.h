// SPDX-License-Identifier: Apache-2.0
// Included before every file of the preloaded library on x86-64. glibc 2.34 moved libpthread and
// libdl into libc and gave their functions new symbol versions. An older ld.so ignores a library
// that asks for those. The old versions are still there under the old number.
//
// They are weak, so that the library names neither libpthread nor libdl: a newer ld.so would open
// two empty files in every process. An older one finds them where the program has those libraries;
// in a program that was started without them the library does nothing (has_libc(), libc.h).
#pragma once

#include <features.h>

#if __GLIBC_PREREQ(2, 34)
#define GPUPROF_PRAGMA(text) _Pragma(#text)
#define GPUPROF_OLD_SYMBOL(name, version) \
  GPUPROF_PRAGMA(weak name)               \
  __asm__(".symver " #name "," #name "@" version)
GPUPROF_OLD_SYMBOL(pthread_create, "GLIBC_2.2.5");
GPUPROF_OLD_SYMBOL(pthread_key_create, "GLIBC_2.2.5");
GPUPROF_OLD_SYMBOL(pthread_setspecific, "GLIBC_2.2.5");
GPUPROF_OLD_SYMBOL(pthread_attr_setstacksize, "GLIBC_2.2.5");
GPUPROF_OLD_SYMBOL(dlopen, "GLIBC_2.2.5");
GPUPROF_OLD_SYMBOL(dlclose, "GLIBC_2.2.5");
GPUPROF_OLD_SYMBOL(dlinfo, "GLIBC_2.3.3");
GPUPROF_OLD_SYMBOL(dladdr, "GLIBC_2.2.5");
GPUPROF_OLD_SYMBOL(dladdr1, "GLIBC_2.3.3");
GPUPROF_OLD_SYMBOL(dlerror, "GLIBC_2.2.5");
#undef GPUPROF_OLD_SYMBOL
#undef GPUPROF_PRAGMA
#endif
