// SPDX-License-Identifier: Apache-2.0
// Calls of a library opened with RTLD_DEEPBIND go to its own dependencies first, past every
// preloaded library; and where this library was not preloaded, all calls pass it. The global offset
// tables of those libraries are changed instead.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpuprof {

// Objects of this namespace, in the order of loading.
struct LoadedObjects {
  size_t count;       // now in the process
  uint64_t unloaded;  // since it started
};
LoadedObjects loaded_objects();

// Lets the objects that were loaded since then call our hooks, where these stand for the function
// that the object is bound to; some that were there before may be looked at again. `handle`: what
// dlopen returned; null: each object's own. Calls made by the objects' constructors have gone
// unseen.
void patch_loaded_since(const LoadedObjects& before, void* handle);

}  // namespace gpuprof
