// SPDX-License-Identifier: Apache-2.0
// Kernel names as tables, messages and the page show them: short, and no two different ones alike.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpuprof::analysis {

// The longest short name, in bytes.
inline constexpr size_t kShortNameBytes = 120;

// The parts of a demangled C++ name that tell it from others: the function and its template
// arguments, functors and types among them. It leaves out
//   - the result, the parameters, and the namespaces of each name;
//   - template arguments that say how elements are reached: Array<char*, 3>, OffsetCalculator, ...
// "vectorized_elementwise_kernel<4, CUDAFunctor_add<float>>". A lambda is the function that it
// stands in, with the numbers of the lambdas around it and its parameters:
// "copy_kernel{3.7.1(float)}". What is not such a name, or damaged, comes back as it is. Not cut.
std::string name_parts(std::string_view name);

// Short names for `names`, at most `width` bytes each (at least 24). What is longer than that, or
// would look like another one of `names`, ends in "~" and digits of the full name's hash. A name
// that neither holds for has the same short name in every set.
std::map<std::string, std::string, std::less<>> short_names(std::span<const std::string> names,
                                                            size_t width = kShortNameBytes);

}  // namespace gpuprof::analysis
