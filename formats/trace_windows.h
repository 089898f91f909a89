// SPDX-License-Identifier: Apache-2.0
// A profiler that opens several windows writes an outside trace of each, which does not say which
// it is.
#pragma once

#include "formats/trace/trace.h"

namespace gpuprof {

// Numbers the windows of outside traces. Traces of one process that follow each other are windows
// of their own, with growing numbers; those that overlap have one number, and are of two programs.
// Over processes those have one number that have steps in common, or else overlap in time. Where
// neither steps nor times tell, the first windows of each have one, then the second ones.
void number_windows(Trace& trace);

}  // namespace gpuprof
