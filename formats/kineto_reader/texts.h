// SPDX-License-Identifier: Apache-2.0
// Strings and arguments of a trace file made sound.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gpuprof::kineto {

// What was wrong in texts, for one line to the user.
struct TextFaults {
  uint64_t escapes = 0;  // backslashes that are none of JSON's, halves of surrogate pairs
  uint64_t utf8 = 0;     // texts that are not UTF-8
  uint64_t values = 0;   // values that JSON has not (NaN, Infinity)
};

// The text that the inside of a JSON string stands for, appended to `out`. An escape that JSON has
// not stays as it is written; bytes that are not UTF-8 stay.
void unescape(std::string_view inside, std::string& out, TextFaults& faults);

// Whether `members` ("key":value,"key":value) is what may stand between the braces of a strict JSON
// object.
bool are_strict_members(std::string_view members);
// The same members without those that are no JSON: values like NaN anywhere within take their
// member with them, wrong escapes and bytes are replaced. The result is strict.
std::string strict_members(std::string_view members, TextFaults& faults);
// Strict, and without space outside of strings, so that it fits on a line.
std::string sound_members(std::string_view members, TextFaults& faults);

}  // namespace gpuprof::kineto
