// SPDX-License-Identifier: Apache-2.0
// Functions that not every libc has. They are weak: another libc (musl) loads this library,
// too, and so does an old glibc without libpthread or libdl. There the library does
// nothing.
#pragma once

#include <dlfcn.h>
#include <pthread.h>

extern "C" {
[[gnu::weak]] const char* gnu_get_libc_version(void);
[[gnu::weak]] int dladdr1(const void* address, Dl_info* info, void** extra, int flags) noexcept;
// What pthread_atfork() calls; the name itself is in a static part of glibc that refers to it.
[[gnu::weak]] int __register_atfork(void (*prepare)(), void (*parent)(), void (*child)(),
                                    void* library);
extern void* __dso_handle;
}
// Before glibc 2.34 these are of libpthread and libdl (glibc_compat.h).
#pragma weak pthread_create
#pragma weak pthread_key_create
#pragma weak dlopen
#pragma weak dladdr

namespace gpuprof {

// False in musl and others. Any thread, at any time.
inline bool is_glibc() { return gnu_get_libc_version != nullptr; }

// Whether the process has every function of libc that the library calls.
inline bool has_libc() {
  return is_glibc() && ::pthread_create && ::pthread_key_create && ::dlopen && ::dladdr;
}

// Registers what runs in the child of each fork. Only where is_glibc().
inline void at_fork_in_child(void (*handler)()) {
  if (__register_atfork) __register_atfork(nullptr, nullptr, handler, __dso_handle);
}

}  // namespace gpuprof
