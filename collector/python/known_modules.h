// SPDX-License-Identifier: Apache-2.0
// Names of module objects (nn.Module): where each lies in its model.
#pragma once

#include "collector/python/python_api.h"
#include "formats/core/record.h"

namespace gpuprof {

// "nn.Module: GPT.blocks.0.attention (CausalAttention)", the path beginning with the class of the
// outermost module; and a number for each object, from 1 on.
struct KnownModule {
  StringId name;
  uint32_t number;  // 0: there was no room, or another thread was naming modules
};

// With the GIL. `around`: the module in whose call this one is called, or null. The outermost
// module names all below it as PyTorch's named_modules() does, through containers and
// wrappers. The names stay until forget_modules(), or until a module around the outermost one
// is called.
KnownModule know_module(const PythonApi& python, PyObject* module, const void* around);
void forget_modules(const PythonApi& python);

}  // namespace gpuprof
