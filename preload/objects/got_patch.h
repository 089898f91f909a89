// SPDX-License-Identifier: Apache-2.0
// Calls of a library opened with RTLD_DEEPBIND go to its own dependencies first, past every
// preloaded library. If this library was not preloaded, all calls pass it. So do calls of the
// allocator, until the activity `malloc` asks for them. The global offset tables of those libraries
// are changed instead.
#pragma once

#include <cstdint>

#include "preload/objects/object_slots.h"

namespace gpuprof {

// Lets the objects that were loaded since then call our hooks, if these stand for the function that
// the object is bound to. It may check some again that were there before. `handle`: what dlopen
// returned; null: each object's own. Calls made by the objects' constructors have gone unseen.
// Those of the allocator are among them if heap_calls_are_patched().
enum class PatchedCalls : uint8_t { all, heap };
void patch_loaded_since(const LoadedObjects& before, void* handle, PatchedCalls calls);

// The same of all calls of all objects: only within the constructor of this library where it is
// opened, as each_loaded_while_opened().
void patch_all_while_opened();

// What a call of that name from this library reaches; null: it makes none.
void* called_by_us(const char* name);

}  // namespace gpuprof
