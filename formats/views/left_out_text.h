// SPDX-License-Identifier: Apache-2.0
// What GPUPROF_BUDGET left out of a window, in words that reports, exports and viewers share.
#pragma once

#include <string>
#include <string_view>

#include "formats/trace/trace.h"

namespace gpuprof {

// As it is called in JSON and in tables: "calls".
std::string_view left_out_name(ShedKind kind);
// "since step 12 (310 ms into the window)"; "in the whole window".
std::string describe_since(const Process& process, const RecordingBudget::LeftOut& left_out);
// What a row of viewers is called whose slices last as long as something is left out, and one of
// these: "call stacks".
inline constexpr std::string_view kLeftOutTitle = "not recorded (GPUPROF_BUDGET)";
std::string left_out_words(ShedKind kind);
// "call stacks since step 12 (310 ms into the window)": a kind, and what describe_since() says.
std::string left_out_words(ShedKind kind, std::string_view since);
// "call stacks since step 12 (...); host samples in the whole window". Empty: nothing was left out.
std::string left_out_list(const Process& process);
// "; not recorded by GPUPROF_BUDGET: " and that list, or empty.
std::string left_out_note(const Process& process);
// "; not recorded since step 12 (...)" of one kind; empty: it is there.
std::string left_out_note(const Process& process, ShedKind kind);

}  // namespace gpuprof
