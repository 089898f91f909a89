// SPDX-License-Identifier: Apache-2.0
// What belongs together of what a framework said in a dump: operators and what they called, forward
// and backward operators, modules within modules, memory given and taken back.
#pragma once

#include "formats/trace/trace.h"

namespace gpuprof {

// Whether events of this kind get an extra here if they have none: their table has room for it.
constexpr bool gets_extra(Kind kind) {
  return kind == Kind::op || kind == Kind::annotation || kind == Kind::module ||
         kind == Kind::tensor;
}

// Numbers operators and modules (see EventExtra), fills Process::operators and forward_backward,
// gives tensors' changes their size and sign: the records of a dump have neither ids nor links.
// After join_process().
void join_framework(const Trace& trace, Process& process);

}  // namespace gpuprof
