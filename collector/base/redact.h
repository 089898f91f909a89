// SPDX-License-Identifier: Apache-2.0
// GPUPROF_REDACT: what a dump does not tell of where, by whom and on what a program was run. All of
// this is of the drain thread and the sampling thread.
#pragma once

#include <cstddef>
#include <string_view>

#include "formats/core/settings.h"

namespace gpuprof {

inline constexpr char kRedacted[] = "[redacted]";

// Once, when the settings are known: bit per Redact.
void redact(uint32_t what);
bool is_redacted(Redact what);

// The path, or its last part.
std::string_view shown_path(std::string_view path);
// The text, or, where paths are redacted, with the last part of each path in it; cut at `size` - 1.
const char* shown_text(const char* text, char* out, size_t size);
// A name that came from the environment, or the pseudonym of it.
const char* shown_name(const char* kind, const char* name, char* out, size_t size);
// `kind`-, and a number that is another for each text and salt: it tells them apart, and no more.
void pseudonym(const char* kind, std::string_view text, std::string_view salt, char* out,
               size_t size);

}  // namespace gpuprof
