// SPDX-License-Identifier: Apache-2.0
// libc's functions that give host memory and take it back. They are not interposed by name: a
// process that does not ask for the activity `malloc` calls its allocator as if we were not there.
// Where it does, got_patch.h turns the calls of all libraries to these, for good.
#pragma once

namespace gpuprof {

struct HeapHook {
  const char* name;
  const char* called;  // what the hook calls itself
  void* hook;
  bool maps;   // asks the kernel: an allocator's own calls are not the program's
  void* real;  // what a call of that name reaches: libc's, or another allocator's; null: not known
};

// Null where there is none of that name.
const HeapHook* heap_hook(const char* name);

// Turns the calls of all objects that are loaded, and of those that will be. Idempotent.
void patch_heap_calls();
bool heap_calls_are_patched();

}  // namespace gpuprof
