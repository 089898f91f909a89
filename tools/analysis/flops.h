// SPDX-License-Identifier: Apache-2.0
// How much arithmetic operators do, from the shapes of their inputs, and how much devices can do.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/trace/trace.h"

namespace gpuprof::analysis {

// What convolutions of a trace give, by their backward passes: a dump has the shapes of inputs, and
// neither stride nor padding.
class ConvolutionOutputs {
 public:
  void add(std::string_view name, std::string_view input_dims);  // of each operator
  // Null: not known, or several.
  const std::vector<double>* of(const std::vector<double>& input,
                                const std::vector<double>& weight) const;

 private:
  std::map<std::pair<std::vector<double>, std::vector<double>>, std::vector<double>> outputs_;
};

// Floating-point operations (a multiply-add is two) of matrix products, convolutions and attention,
// forward and backward; 0: another operator, or its shapes are not known.
// `arguments`: the operator's EventExtra::args, for "Concrete Inputs"; `known`: where it has none.
double flop_of(std::string_view name, std::string_view input_dims, std::string_view arguments,
               const ConvolutionOutputs* known = nullptr);

enum class Precision : uint8_t { fp32, tf32, half, other };

// Of the first input that has one; `tensor_cores`: whether the operator's kernels use them.
Precision precision_of(std::string_view input_types, bool tensor_cores);

// Peak of a device in FLOP/s without sparsity; 0: not known.
double peak_flops(std::string_view device, Precision precision);

}  // namespace gpuprof::analysis
