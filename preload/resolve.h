// SPDX-License-Identifier: Apache-2.0
// From a row of the table to the real function behind it.
#pragma once

#include "collector/base/host.h"
#include "preload/api.h"

namespace gpuprof {

// The real function of a row as seen from here: RTLD_NEXT, then the library if it is loaded (a
// library opened RTLD_LOCAL is not in RTLD_NEXT's scope). Null when there is none. Never our
// wrapper.
void* find_real(Api api);

// The pointer through which a row's hook calls, for the dlsym hook. Filled by prepare_slots().
struct HookSlot {
  void* wrapper;   // the exported function
  void* (*get)();  // the real function, null while not resolved
  void (*set)(void* real);
};
HookSlot& hook_slot(Api api);
// By its parts: a constant HookSlot would be addresses in the data, which each process relocates.
void fill_slot(Api api, void* wrapper, void* (*get)(), void (*set)(void* real));

// Fills the slots, once: most processes that load this library never look a function of CUDA's up.
void prepare_slots();

// Once, by the constructor or by the first hook that is called before it.
void prepare_library();
// Whether a copy of this library in another file was loaded before.
bool another_copy_works();

// libc's dlsym, found without calling any: what a library is bound to, and what is next after us.
// Another library's answers that of who asks. Null only if libc cannot be walked.
SymbolLookup real_dlsym();

}  // namespace gpuprof
