// SPDX-License-Identifier: Apache-2.0
// Numbers as trace files write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace gpuprof::kineto {

// Decimal microseconds as nanoseconds, exactly; digits past the third decimal are rounded.
// Exponents are understood. Limited to +-2^62; nothing: not a number.
std::optional<int64_t> nanoseconds(std::string_view microseconds);

// Integers; "7", "7.0" and "7e0" are the same. Nothing: not a number, not whole, or too large.
std::optional<uint64_t> whole(std::string_view number);
std::optional<int64_t> signed_whole(std::string_view number);
// The same, or "0x" and hexadecimal digits.
std::optional<uint64_t> whole_or_hex(std::string_view number);

std::optional<double> real(std::string_view number);

}  // namespace gpuprof::kineto
