// SPDX-License-Identifier: Apache-2.0
// What a file that is no input holds, for the line that refuses it.
#pragma once

#include <string>
#include <string_view>

namespace gpuprof {

// "an HTML page", "text in UTF-16; convert it ...", from the text's first bytes: some kilobytes do.
// Empty: not known, bytes of some sort. Thread-safe.
std::string known_contents(std::string_view first);

// The same where known_contents() has no word for it: its first bytes in hexadecimal.
std::string contents_of(std::string_view first);

// Whether the text begins as gzip, ZIP, Zstandard, bzip2 or xz does: what is packed in it may be
// there as it is, where packing gained nothing.
bool is_packed(std::string_view first);

// What is read instead: the end of that line.
inline constexpr std::string_view kAllowedInput =
    "gpuprof reads its own dumps, and JSON traces of torch.profiler plain or in gzip";

}  // namespace gpuprof
