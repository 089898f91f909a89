// SPDX-License-Identifier: Apache-2.0
// Who says it: resources by OpenTelemetry's semantic conventions, and ids that are the same in each
// export.
#pragma once

#include <cstdint>
#include <string>

#include "formats/trace/trace.h"
#include "tools/analysis/anatomy.h"
#include "tools/describe.h"
#include "tools/exported.h"

namespace gpuprof::otlp {

// Of a process, the same for all its windows.
Json process_resource(const Process& process);
// Of all processes of a run, of which `process` is one.
Json run_resource(const Process& process);
// The library that recorded the process.
Json scope_of(const Process& process);

// 32 hexadecimal digits of job, run and attempt. Where a trace names none of these, of
// `begin`, the first moment of the input.
std::string trace_id(const Process& process, int64_t begin);
// 16 of them, of the process, its window and the step, which is one of the source's. Not of its
// time, which is another where clocks of more hosts are aligned.
std::string span_id(const Exported& source, const analysis::StepAnatomy& step);

// The program's file, or the script or module that python runs: "train.py".
std::string service_name(const Process& process);

}  // namespace gpuprof::otlp
