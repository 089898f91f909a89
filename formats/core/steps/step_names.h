// SPDX-License-Identifier: Apache-2.0
// Texts of ranges (NVTX, or of a JSON trace) that stand for steps. Views into their arguments;
// thread-safe.
#pragma once

#include <string_view>

namespace gpuprof {

// Without the number at its end, and one of " #_:" before that: "step 12" -> "step".
std::string_view base_name(std::string_view message);

// NAME of the title that XLA gives an execution of a module,
// "XlaModule:#prefix=...,hlo_module=NAME,program_id=12#"; empty: it is no such title.
std::string_view xla_module(std::string_view message);

// `message` is NAME, or NAME, one of " #_:" or nothing, and digits, or the title of XLA's module
// NAME. NAME* is all that begins with NAME.
bool step_name_matches(std::string_view message, std::string_view name);

// The base name, where it is one that training loops give their steps, in any case; else empty.
std::string_view likely_step_name(std::string_view message);

// NAME* of the ranges that an inference engine gives its steps, where `message` is one; else empty.
// They say what is in a step, each time something else.
std::string_view engine_step_name(std::string_view message);

}  // namespace gpuprof
