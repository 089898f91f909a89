// SPDX-License-Identifier: Apache-2.0
// What preload gives the collector when the library is loaded. It is of the process: forks keep it.
// One object, since most processes that load the library never use a GPU and touch nothing else.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace gpuprof {

struct ApiRow;

// The real dlsym behind the interposed one.
using SymbolLookup = void* (*)(void* handle, const char* name);
// A walk through the symbols of the program (library null) or of loaded libraries.
using SymbolWalk = void* (*)(const char* library, const char* name);

struct Host {
  const ApiRow* rows = nullptr;  // live as long as the process
  size_t row_count = 0;
  SymbolLookup (*find_lookup)() = nullptr;
  SymbolWalk walk = nullptr;
  void (*patch_heap)() = nullptr;       // makes the program's calls of allocators come to us
  const char* (*own_path)() = nullptr;  // this library's file as it was opened; "" if unknown
  std::atomic<const char*> other_copy{nullptr};  // a library past whose copy calls go unhooked
  std::atomic<bool> nvtx_goes_elsewhere{false};  // NVTX has asked who takes its calls: not we do
  std::atomic<uint32_t> prepared{0};             // 1: a thread is at it, 2: done
  uint64_t process_start_ticks = 0;              // of this process: a forked one has its own
  bool stderr_was_closed = false;   // what has its number since is a file of the program's
  char start_directory[1024] = {};  // "" if it cannot be named
};

// Written by the library's constructor, or by the first hook that is called before it.
extern Host g_host;

}  // namespace gpuprof
