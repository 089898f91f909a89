// SPDX-License-Identifier: Apache-2.0
// Calls of a library opened with RTLD_DEEPBIND go to its own dependencies first, past every
// preloaded library; and where this library was not preloaded, all calls pass it. The global offset
// tables of those libraries are changed instead.
#pragma once

#include <cstddef>

namespace gpuprof {

// Objects of this namespace now in the process, in the order of loading.
size_t count_loaded_objects();

// Lets the objects that were loaded after the first `already` call our hooks, where these stand for
// the function that the object is bound to. `handle`: what dlopen returned; null: each object's
// own. Calls made by the objects' constructors have gone unseen.
void patch_loaded_after(size_t already, void* handle);

}  // namespace gpuprof
