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

// Forward: input, weight, bias, stride, padding, dilation. Each output element takes a product and
// a sum for each element of one filter.
double convolution(const Dims& dims, std::string_view arguments) {
  if (dims.size() < 2 || dims[0].size() < 3 || dims[0].size() != dims[1].size()) return 0;
  const nlohmann::json inputs = concrete_inputs(arguments);
  if (!inputs.is_array() || inputs.size() < 6) return 0;
  // aten::conv2d has the number of groups where aten::convolution says whether it is transposed.
  if (inputs.size() > 6 && inputs[6].is_string() && inputs[6].get<std::string>() == "True") {
    return 0;
  }
  const std::vector<double> stride = list_of(inputs, 3), padding = list_of(inputs, 4),
                            dilation = list_of(inputs, 5);
  const size_t space = dims[0].size() - 2;
  double outputs = dims[0][0] * dims[1][0];
  for (size_t i = 0; i < space; ++i) {
    const auto at = [i](const std::vector<double>& list) {
      return list.empty() ? -1 : list.size() == 1 ? list[0] : i < list.size() ? list[i] : -1;
    };
    if (at(stride) <= 0 || at(padding) < 0 || at(dilation) <= 0) return 0;
    const double reach = at(dilation) * (dims[1][i + 2] - 1) + 1;
    const double steps = std::floor((dims[0][i + 2] + 2 * at(padding) - reach) / at(stride));
    if (!(steps >= 0)) return 0;  // a filter that is larger than its input, or no number
    outputs *= steps + 1;
  }
  return 2 * outputs * product(dims[1], 1);
}

// grad_output, input, weight, ...: the gradients of input and weight take as much as the forward
// pass each. The last argument says which are wanted.
double convolution_backward(const Dims& dims, std::string_view arguments) {
  if (dims.size() < 3 || dims[0].size() < 3 || dims[2].size() < 3) return 0;
  double wanted = 2;
  const nlohmann::json inputs = concrete_inputs(arguments);
  if (inputs.is_array() && inputs.size() > 10 && inputs[10].is_string()) {
    wanted = 0;
    const std::string mask = inputs[10].get<std::string>();
    const size_t comma = mask.find(',');
    if (mask.find("True") < comma) ++wanted;
    if (mask.find("True", comma) < mask.find(',', comma + 1)) ++wanted;
  }
  return wanted * 2 * product(dims[0]) * product(dims[2], 1);
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

static double formula_of(std::string_view name, std::string_view input_dims,
                         std::string_view arguments) {
  if (!name.starts_with("aten::") || input_dims.empty()) return 0;
  name.remove_prefix(6);
  const auto dims = [input_dims] { return dims_of(input_dims); };
  if (name == "mm") return matrix_product(dims(), 0, 1);
  if (name == "addmm" || name == "_addmm_activation") return matrix_product(dims(), 1, 2);
  if (name == "bmm") return batched_product(dims(), 0, 1);
  if (name == "baddbmm") return batched_product(dims(), 1, 2);
  if (name == "linear") return linear(dims());
  if (name == "convolution" || name == "_convolution" || name == "conv1d" || name == "conv2d" ||
      name == "conv3d") {
    return convolution(dims(), arguments);
  }
  if (name == "convolution_backward") return convolution_backward(dims(), arguments);
  if (!name.starts_with("scaled_dot_product") && !name.starts_with("_scaled_dot_product")) return 0;
  // Backward: five products instead of two.
  if (name.ends_with("_backward")) return 2.5 * attention(dims(), 1);
  return attention(dims(), 0);
}

double flop_of(std::string_view name, std::string_view input_dims, std::string_view arguments) {
  const double flop = formula_of(name, input_dims, arguments);
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
