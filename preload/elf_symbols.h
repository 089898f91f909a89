// SPDX-License-Identifier: Apache-2.0
// Dynamic symbols of loaded objects, read from their ELF tables: works before and without dlsym.
#pragma once

namespace gpuprof {

// Address of `symbol` in the first loaded object whose file name begins with `soname`; null if none.
void* symbol_in_loaded(const char* soname, const char* symbol);

}  // namespace gpuprof
