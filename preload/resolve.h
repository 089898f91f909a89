// SPDX-License-Identifier: Apache-2.0
// From a row of the table to the real function behind it.
#pragma once

#include "collector/base/host.h"
#include "preload/api.h"

namespace gpuprof {

// The real function of a row as seen from here: of the copy that a look-up has filled a hook from
// (note_used_copy), else RTLD_NEXT, else that of a loaded copy of the
// library (one opened RTLD_LOCAL is not in RTLD_NEXT's scope), under whatever name. Null when there
// is none. Never our wrapper. What it finds stays mapped.
void* find_real(Api api);

// The same of any function of a library, as it is now: nothing is kept for it.
void* function_of_hooked_copy(Library library, const char* name);
// Whether `real` is of the copy that the row's hook calls, or would call. A program may have
// several copies of a library, of other versions: looking one's functions up must not turn those
// calls to it that are linked to another.
bool belongs_to_hooks(Api api, const void* real);
// A hook calls this function from now on, since the program looked it up: so do the library's other
// hooks call that copy, also where another is in the global scope later.
void note_used_copy(Library library, void* function);
// A function that has no row and that all versions have; how a copy's file begins, unless renamed.
const char* marking_function(Library library);
const char* file_of_copies(Library library);

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
