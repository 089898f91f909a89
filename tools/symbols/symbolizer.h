// SPDX-License-Identifier: Apache-2.0
// Names the return addresses of native stacks. Functions come from the mapped files' symbol tables,
// lines and inlined functions from their debug info, which may lie in a file of its own. A file
// counts only if it is the very one that was mapped; else there is no name.
#pragma once

#include <string>
#include <vector>

#include "formats/trace/trace.h"

namespace gpuprof {

struct SymbolOptions {
  // Folders with separate debug info, searched in order, as gdb does:
  // <dir>/.build-id/ab/cdef.debug, and for .gnu_debuglink <dir>/<folder of the file>/<name>. Beside
  // the file and in its .debug/ it is looked for anyway.
  std::vector<std::string> debug_dirs = {"/usr/lib/debug"};
};

// Fills in the frames of every stack of every process.
void symbolize(Trace& trace, const SymbolOptions& options);

// The functions at one return address of `module`, innermost first; empty: not known. For tests.
std::vector<Frame> symbolize_address(const Module& module, uint64_t address,
                                     const SymbolOptions& options);

}  // namespace gpuprof
