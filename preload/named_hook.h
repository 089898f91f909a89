// SPDX-License-Identifier: Apache-2.0
// Functions of ours by the names of those that they stand for, where calls are led to them through
// a library's slots (got_patch.h). Linked with -Bsymbolic-functions: the addresses are this
// library's own, whatever the program finds under their names.
#pragma once

#include <cstddef>
#include <cstring>

namespace gpuprof {

struct NamedHook {
  const char* name;
  void* hook;
};

#define GPUPROF_NAMED_HOOK(function) \
  { #function, reinterpret_cast < void*>(&::function) }

// Null: none of them.
template <size_t count>
void* find_named_hook(const NamedHook (&hooks)[count], const char* name) {
  for (const NamedHook& hook : hooks) {
    if (std::strcmp(hook.name, name) == 0) return hook.hook;
  }
  return nullptr;
}

}  // namespace gpuprof
