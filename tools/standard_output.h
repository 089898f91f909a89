// SPDX-License-Identifier: Apache-2.0
// Standard output, if a writer of formats/ writes to it by its path.
#pragma once

namespace gpuprof {

// After such a write failed: throws ClosedPipe (console.h) if whoever read it is gone.
void end_if_reader_is_gone();

}  // namespace gpuprof
