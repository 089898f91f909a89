// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/flops.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace gpuprof::analysis {
namespace {

using Dims = std::vector<std::vector<double>>;  // by input; empty where it is no tensor

Dims dims_of(std::string_view text) {
  Dims out;
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_array()) return out;
  for (const auto& input : json) {
    std::vector<double>& dims = out.emplace_back();
    if (!input.is_array()) continue;
    for (const auto& dim : input) {
      if (!dim.is_number()) {
        dims.clear();  // a list of tensors
        break;
      }
      dims.push_back(dim.get<double>());
    }
  }
  return out;
}

double product(const std::vector<double>& dims, size_t from = 0) {
  double out = dims.empty() ? 0 : 1;
  for (size_t i = from; i < dims.size(); ++i) out *= dims[i];
  return out;
}

bool has(const Dims& dims, size_t input, size_t rank) {
  return input < dims.size() && dims[input].size() == rank;
}

double matrix_product(const Dims& dims, size_t a, size_t b) {
  if (!has(dims, a, 2) || !has(dims, b, 2) || dims[a][1] != dims[b][0]) return 0;
  return 2 * dims[a][0] * dims[a][1] * dims[b][1];
}

double batched_product(const Dims& dims, size_t a, size_t b) {
  if (!has(dims, a, 3) || !has(dims, b, 3) || dims[a][2] != dims[b][1]) return 0;
  return 2 * dims[a][0] * dims[a][1] * dims[a][2] * dims[b][2];
}

// Numbers in an argument that is a list as text, as "[2, 2]".
std::vector<double> list_of(const nlohmann::json& inputs, size_t at) {
  std::vector<double> out;
  if (at >= inputs.size() || !inputs[at].is_string()) return out;
  const auto list = nlohmann::json::parse(inputs[at].get<std::string>(), nullptr, false);
  if (!list.is_array()) return out;
  for (const auto& each : list) {
    if (each.is_number()) out.push_back(each.get<double>());
  }
  return out;
}

nlohmann::json concrete_inputs(std::string_view arguments) {
  const auto json = nlohmann::json::parse("{" + std::string(arguments) + "}", nullptr, false);
  if (!json.is_object() || !json.contains("Concrete Inputs")) return {};
  return json["Concrete Inputs"];
}

// The text of an argument, as "True"; empty: not known.
std::string argument(const nlohmann::json& inputs, size_t at) {
  if (!inputs.is_array() || at >= inputs.size() || !inputs[at].is_string()) return {};
  return inputs[at].get<std::string>();
}

bool is_convolution(const Dims& dims, size_t input, size_t weight) {
  return weight < dims.size() && dims[input].size() >= 3 &&
         dims[input].size() == dims[weight].size();
}

// Each output element takes a product and a sum for each element of one filter; of a transposed one
// each input element does. The first of a weight's dims is whose channels are not in a filter.
double convolution_of(const std::vector<double>& input, const std::vector<double>& weight,
                      const std::vector<double>& output, bool transposed) {
  return 2 * product(transposed ? input : output) * product(weight, 1);
}

enum class Answer { no, yes, not_known };

// By shapes. A convolution that is not transposed makes a side longer by a filter's side less one
// at most, which a transposed one does without a stride, too.
Answer is_transposed(const std::vector<double>& input, const std::vector<double>& weight,
                     const std::vector<double>& output) {
  const bool of_output = output[1] == weight[0], of_input = input[1] == weight[0];
  if (of_output != of_input) return of_input ? Answer::yes : Answer::no;
  if (!of_output) return Answer::not_known;
  Answer answer = Answer::no;
  for (size_t i = 2; i < input.size(); ++i) {
    if (output[i] > input[i] + weight[i] - 1) return Answer::yes;
    if (output[i] > input[i]) answer = Answer::not_known;
  }
  return answer;
}

// Sides of the output from stride, padding and dilation; empty: not known.
std::vector<double> output_of(const Dims& dims, const nlohmann::json& inputs) {
  const std::vector<double> stride = list_of(inputs, 3), padding = list_of(inputs, 4),
                            dilation = list_of(inputs, 5);
  std::vector<double> out = {dims[0][0], dims[1][0]};
  for (size_t i = 0; i + 2 < dims[0].size(); ++i) {
    const auto at = [i](const std::vector<double>& list) {
      return list.empty() ? -1 : list.size() == 1 ? list[0] : i < list.size() ? list[i] : -1;
    };
    if (at(stride) <= 0 || at(padding) < 0 || at(dilation) <= 0) return {};
    const double reach = at(dilation) * (dims[1][i + 2] - 1) + 1;
    const double steps = std::floor((dims[0][i + 2] + 2 * at(padding) - reach) / at(stride));
    if (!(steps >= 0)) return {};  // a filter that is larger than its input, or no number
    out.push_back(steps + 1);
  }
  return out;
}

// input, weight, bias, stride, padding, dilation. Without the last three the output is what the
// backward pass of a convolution of the same input and weight has. aten::convolution says as its
// input 6 whether it is transposed, where aten::conv2d has the number of groups.
double convolution(const Dims& dims, std::string_view arguments, const ConvolutionOutputs* known) {
  if (!is_convolution(dims, 0, 1)) return 0;
  const nlohmann::json inputs = concrete_inputs(arguments);
  if (argument(inputs, 6) == "True") return convolution_of(dims[0], dims[1], {}, true);
  if (inputs.is_array() && inputs.size() >= 6) {
    const std::vector<double> output = output_of(dims, inputs);
    return output.empty() ? 0 : convolution_of(dims[0], dims[1], output, false);
  }
  const std::vector<double>* const output = known ? known->of(dims[0], dims[1]) : nullptr;
  if (!output) return 0;
  const Answer transposed = is_transposed(dims[0], dims[1], *output);
  return transposed == Answer::not_known
             ? 0
             : convolution_of(dims[0], dims[1], *output, transposed == Answer::yes);
}

// grad_output, input, weight, ...: the gradients of input and weight take as much as the forward
// pass each. Input 7 says whether it is transposed, 10 which gradients are wanted. If the forward
// pass cannot be told, the backward pass is left out, too.
double convolution_backward(const Dims& dims, std::string_view arguments,
                            const ConvolutionOutputs* known) {
  if (!is_convolution(dims, 1, 2) || dims[0].size() != dims[1].size()) return 0;
  const nlohmann::json inputs = concrete_inputs(arguments);
  const bool told = inputs.is_array();
  if (!told && (!known || !known->of(dims[1], dims[2]))) return 0;
  Answer transposed = is_transposed(dims[1], dims[2], dims[0]);
  if (argument(inputs, 7) == "True") transposed = Answer::yes;
  if (argument(inputs, 7) == "False") transposed = Answer::no;
  if (transposed == Answer::not_known) return 0;
  double wanted = 2;
  if (const std::string mask = argument(inputs, 10); !mask.empty()) {
    wanted = 0;
    const size_t comma = mask.find(',');
    if (mask.find("True") < comma) ++wanted;
    if (mask.find("True", comma) < mask.find(',', comma + 1)) ++wanted;
  }
  return wanted * convolution_of(dims[1], dims[2], dims[0], transposed == Answer::yes);
}

// Of matrices in groups, by rows, columns or as a batch: [m, k] or [g, m, k] times [k, n] or
// [g, k, n]. Each group has its part of the one dimension that both do not have.
double grouped_product(const Dims& dims) {
  if (dims.size() < 2 || dims[0].size() < 2 || dims[1].size() < 2) return 0;
  const std::vector<double>&a = dims[0], &b = dims[1];
  if (a.size() > 3 || b.size() > 3 || a.back() != b[b.size() - 2]) return 0;
  const double groups = a.size() == 3 && b.size() == 3 ? a[0] : 1;
  return 2 * groups * a[a.size() - 2] * a.back() * b.back();
}

// Query, key and value as [b, s, h, d], from input `first` on. With `lengths` they are of
// sequences of different lengths, which shapes do not tell.
double attention_of_kernel(const Dims& dims, size_t first, size_t lengths) {
  if (!has(dims, first, 4) || !has(dims, first + 1, 4) || !has(dims, first + 2, 4)) return 0;
  if (lengths < dims.size() && !dims[lengths].empty()) return 0;
  const std::vector<double>&q = dims[first], &k = dims[first + 1], &v = dims[first + 2];
  return 2 * q[0] * q[1] * q[2] * k[1] * (q[3] + v[3]);
}

// Query [b, h, s, d], key [b, h, t, d], value [b, h, t, e], from input `first` on; a causal mask is
// not taken off.
double attention(const Dims& dims, size_t first) {
  if (!has(dims, first, 4) || !has(dims, first + 1, 4) || !has(dims, first + 2, 4)) return 0;
  const std::vector<double>&q = dims[first], &k = dims[first + 1], &v = dims[first + 2];
  return 2 * q[0] * q[1] * q[2] * k[2] * (q[3] + v[3]);
}

double linear(const Dims& dims) {
  if (dims.size() < 2 || dims[0].size() < 2 || dims[1].size() != 2) return 0;
  return 2 * product(dims[0]) * dims[1][0];
}

struct Peak {
  const char* name;         // part of the device's
  double fp32, tf32, half;  // TFLOP/s; tf32 0: it has none; all 0: not known
};

// Dense, from what NVIDIA publishes of each device: its figures "with sparsity" are halved here.
// The first row whose name is in the device's counts. A device whose figures were not found is not
// here.
constexpr Peak kPeaks[] = {
    // NVIDIA Blackwell Datasheet, one GPU of GB200 NVL72: FP32 80; TF32 2,500 and FP16/BF16 5,000
    // with sparsity.
    {"GB200", 80, 1250, 2500},
    // The same, one GPU of HGX B200: FP32 75; TF32 2,200 and FP16/BF16 4,500 with sparsity.
    {"B200", 75, 1100, 2250},
    // NVIDIA GH200 Grace Hopper Superchip Datasheet: FP32 67, TF32 494, FP16/BF16 990.
    {"GH200", 67, 494, 990},
    // Its clocks are not those of the H200 below.
    {"H200 NVL", 0, 0, 0},
    // NVIDIA H200 Tensor Core GPU Datasheet, SXM: FP32 67; TF32 989 and FP16/BF16 1,979 with
    // sparsity.
    {"H200", 67, 494.5, 989.5},
    // NVIDIA H100 Tensor Core GPU Datasheet, H100 NVL: FP32 60; TF32 835 and FP16/BF16 1,671 with
    // sparsity.
    {"H100 NVL", 60, 417.5, 835.5},
    // NVIDIA H100 Tensor Core GPU Architecture whitepaper, H100 PCIe: FP32 51.2, TF32 378,
    // FP16/BF16 756.
    {"H100 PCIe", 51.2, 378, 756},
    // The same, H100 SXM5: FP32 66.9, TF32 494.7, FP16/BF16 989.4.
    {"H100", 66.9, 494.7, 989.4},
    // NVIDIA A100 Tensor Core GPU Datasheet, SXM and PCIe: FP32 19.5, TF32 156, FP16/BF16 312.
    {"A100", 19.5, 156, 312},
    // NVIDIA A40 Datasheet: FP32 37.4, TF32 74.8, FP16/BF16 149.7.
    {"A40", 37.4, 74.8, 149.7},
    // NVIDIA A10 Datasheet: FP32 31.2, TF32 62.5, FP16/BF16 125.
    {"A10", 31.2, 62.5, 125},
    // NVIDIA L40S Datasheet: FP32 91.6, TF32 183, FP16/BF16 362.05.
    {"L40S", 91.6, 183, 362.05},
    // NVIDIA L4 Tensor Core GPU Datasheet: FP32 30.3; TF32 120 and FP16/BF16 242 with sparsity.
    {"L4", 30.3, 60, 121},
    // NVIDIA V100 Tensor Core GPU Datasheet, in order V100S, PCIe, SXM2: FP32 16.4, 14, 15.7;
    // Tensor cores (FP16) 130, 112, 125.
    {"V100S-PCIE", 16.4, 0, 130},
    {"V100-PCIE", 14, 0, 112},
    {"V100", 15.7, 0, 125},
    // NVIDIA T4 Tensor Core GPU Datasheet: FP32 8.1, FP16 65.
    {"T4", 8.1, 0, 65},
};

// "A10" is not in "A100", nor "L4" in "L40".
bool names_device(std::string_view device, std::string_view part) {
  for (size_t at = device.find(part); at != std::string_view::npos;
       at = device.find(part, at + 1)) {
    const char after = at + part.size() < device.size() ? device[at + part.size()] : ' ';
    const char before = at ? device[at - 1] : ' ';
    const auto plain = [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z'); };
    if (!plain(after) && !plain(before)) return true;
  }
  return false;
}

}  // namespace

void ConvolutionOutputs::add(std::string_view name, std::string_view input_dims) {
  if (name != "aten::convolution_backward") return;
  const Dims dims = dims_of(input_dims);
  if (!is_convolution(dims, 1, 2)) return;
  const auto [at, fresh] = outputs_.try_emplace({dims[1], dims[2]}, dims[0]);
  if (!fresh && at->second != dims[0]) at->second.clear();
}

const std::vector<double>* ConvolutionOutputs::of(const std::vector<double>& input,
                                                  const std::vector<double>& weight) const {
  const auto found = outputs_.find({input, weight});
  const bool one = found != outputs_.end() && found->second.size() == input.size();
  return one ? &found->second : nullptr;
}

static double formula_of(std::string_view name, std::string_view input_dims,
                         std::string_view arguments, const ConvolutionOutputs* known) {
  if (!name.starts_with("aten::") || input_dims.empty()) return 0;
  name.remove_prefix(6);
  const auto dims = [input_dims] { return dims_of(input_dims); };
  if (name == "mm" || name == "_scaled_mm" || name == "_int_mm") {
    return matrix_product(dims(), 0, 1);
  }
  if (name == "_grouped_mm" || name == "_scaled_grouped_mm") return grouped_product(dims());
  if (name == "addmm" || name == "_addmm_activation") return matrix_product(dims(), 1, 2);
  if (name == "bmm") return batched_product(dims(), 0, 1);
  if (name == "baddbmm") return batched_product(dims(), 1, 2);
  if (name == "linear") return linear(dims());
  if (name == "convolution" || name == "_convolution" || name == "conv1d" || name == "conv2d" ||
      name == "conv3d") {
    return convolution(dims(), arguments, known);
  }
  if (name == "conv_transpose1d" || name == "conv_transpose2d" || name == "conv_transpose3d") {
    const Dims shapes = dims();
    return is_convolution(shapes, 0, 1) ? convolution_of(shapes[0], shapes[1], {}, true) : 0;
  }
  if (name == "convolution_backward") return convolution_backward(dims(), arguments, known);
  if (name == "_flash_attention_forward") return attention_of_kernel(dims(), 0, 3);
  if (name == "_efficient_attention_forward") return attention_of_kernel(dims(), 0, 4);
  if (!name.starts_with("scaled_dot_product") && !name.starts_with("_scaled_dot_product")) return 0;
  // Backward: five products instead of two.
  if (name.ends_with("_backward")) return 2.5 * attention(dims(), 1);
  return attention(dims(), 0);
}

double flop_of(std::string_view name, std::string_view input_dims, std::string_view arguments,
               const ConvolutionOutputs* known) {
  const double flop = formula_of(name, input_dims, arguments, known);
  return std::isfinite(flop) && flop > 0 ? flop : 0;  // a trace may claim any shape
}

Precision precision_of(std::string_view input_types, bool tensor_cores) {
  for (const std::string_view type : {"c10::Half", "c10::BFloat16", "BFloat16", "Half"}) {
    if (input_types.find(type) != std::string_view::npos) return Precision::half;
  }
  if (input_types.find("float") == std::string_view::npos) return Precision::other;
  return tensor_cores ? Precision::tf32 : Precision::fp32;
}

double peak_flops(std::string_view device, Precision precision) {
  if (precision == Precision::other) return 0;
  if (names_device(device, "MIG")) return 0;  // a part of the device
  for (const Peak& peak : kPeaks) {
    if (!names_device(device, peak.name)) continue;
    const double tera = precision == Precision::half                    ? peak.half
                        : precision == Precision::tf32 && peak.tf32 > 0 ? peak.tf32
                                                                        : peak.fp32;
    return tera * 1e12;
  }
  return 0;
}

}  // namespace gpuprof::analysis
