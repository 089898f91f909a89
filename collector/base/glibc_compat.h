// SPDX-License-Identifier: Apache-2.0
// Included before every file of the preloaded library. glibc 2.34 moved libpthread and
// libdl into libc and gave their functions new symbol versions. An older ld.so ignores a library
// that asks for those.
//
// So these functions have no version here: ld.so takes the oldest, or the only one. A version would
// also name the file that has it, libc.so.6, and an ld.so before glibc 2.30 ends any program in
// which that file lacks it.
//
// They are weak, so that the library names neither libpthread nor libdl: a newer ld.so would open
// two empty files in every process. An older one finds them where the program has those libraries;
// in a program that was started without them the library does nothing (has_libc(), libc.h).
#pragma once

#include <features.h>

#if __GLIBC_PREREQ(2, 34)
#define GPUPROF_PRAGMA(text) _Pragma(#text)
#define GPUPROF_NO_VERSION(name) \
  GPUPROF_PRAGMA(weak name)      \
  __asm__(".symver " #name "," #name "@")
GPUPROF_NO_VERSION(pthread_create);
GPUPROF_NO_VERSION(pthread_key_create);
GPUPROF_NO_VERSION(pthread_setspecific);
GPUPROF_NO_VERSION(pthread_attr_setstacksize);
GPUPROF_NO_VERSION(dlopen);
GPUPROF_NO_VERSION(dlclose);
GPUPROF_NO_VERSION(dlinfo);
GPUPROF_NO_VERSION(dladdr);
GPUPROF_NO_VERSION(dladdr1);
GPUPROF_NO_VERSION(dlerror);
#undef GPUPROF_NO_VERSION
#undef GPUPROF_PRAGMA
#endif
