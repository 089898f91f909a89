// SPDX-License-Identifier: Apache-2.0
// Libraries that the process has already loaded, by their sonames. Nothing is loaded here.
#pragma once

#include <link.h>

#include <cstddef>

namespace gpuprof {

// dl_iterate_phdr, with no fork meanwhile: it holds the loader's `_dl_load_write_lock`, which glibc
// (2.36, sysdeps/nptl/fork.h) hands to a child as it is. With it held there, each dlopen of the
// child would wait for ever. Any thread; it waits as ForkWaitsScope does.
int list_objects(int (*visit)(dl_phdr_info*, size_t, void*), void* context);

// Handle of an already loaded libcudart, libcuda, libnccl, libnvidia-ml (any known soname), or
// null.
void* loaded_cudart();
void* loaded_driver();
void* loaded_nccl();
void* loaded_nvml();
// libstdc++ or libc++abi.
void* loaded_cxx_runtime();

// Handle of the first loaded library whose file's name begins so, or null. It is kept.
void* loaded_library(const char* begin);

// Whether the name of a loaded library's file begins so. Unlike the above it waits for no other
// thread's dlopen.
bool library_is_loaded(const char* begin);

// The real symbol, never one of our wrappers; null when `handle` is null or has none.
void* real_symbol(void* handle, const char* name);
// Likewise of the program and the libraries that it was started with.
void* program_symbol(const char* name);

// What the program itself exports, or a loaded library whose file name begins with `library`; null
// if neither does. Unlike a dlsym that finds nothing it allocates nothing and leaves dlerror alone.
void* exported_symbol(const char* library, const char* name);

}  // namespace gpuprof
