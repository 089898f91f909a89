// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/kernel_families.h"

#include <algorithm>
#include <iterator>

#include "formats/core/names.h"

namespace gpuprof::analysis {
namespace {

struct Mark {
  std::string_view text;
  std::string_view family;
};

// The first that a name contains decides: what is more particular comes first.
constexpr Mark kFamilies[] = {
    {"reshape_and_cache", "layout and copies"},  // vLLM's, into the pages of keys and values
    {"deep_gemm::transpose", "layout and copies"},
    {"bitonicSort", "sort and scan"},
    {"RadixSort", "sort and scan"},
    {"flash_", "attention"},
    {"FlashAttn", "attention"},
    {"PrefillWith", "attention"},  // FlashInfer's
    {"DecodeWith", "attention"},
    {"fmha", "attention"},
    {"attention", "attention"},
    {"scudnn", "convolution"},
    {"winograd", "convolution"},
    {"implicit_", "convolution"},
    {"dgrad", "convolution"},
    {"wgrad", "convolution"},
    {"fprop", "convolution"},
    {"conv", "convolution"},
    {"batch_norm", "normalization"},
    {"batchnorm", "normalization"},
    {"bn_fw", "normalization"},
    {"bn_bw", "normalization"},
    {"layer_norm", "normalization"},
    {"LayerNorm", "normalization"},
    {"GroupNorm", "normalization"},
    {"RMSNorm", "normalization"},
    {"rms_norm", "normalization"},
    {"softmax", "softmax and loss"},
    {"SoftMax", "softmax and loss"},
    {"Softmax", "softmax and loss"},
    {"nll_loss", "softmax and loss"},
    {"multi_tensor", "optimizer"},
    {"adam", "optimizer"},
    {"Adam", "optimizer"},
    {"gemm", "matrix product"},
    {"gemv", "matrix product"},
    {"matmul", "matrix product"},
    {"fused_moe", "matrix product"},
    {"cutlass", "matrix product"},
    {"nvjet", "matrix product"},
    {"splitK", "matrix product"},
    {"Cijk_", "matrix product"},
    {"embedding", "indexing and embedding"},
    {"index", "indexing and embedding"},
    {"gather", "indexing and embedding"},
    {"scatter", "indexing and embedding"},
    {"pool", "pooling"},
    {"dropout", "dropout and random"},
    {"philox", "dropout and random"},
    {"distribution", "dropout and random"},
    {"reduce", "reduction"},
    {"Reduce", "reduction"},
    {"sort", "sort and scan"},
    {"scan", "sort and scan"},
    {"nchwToNhwc", "layout and copies"},
    {"nhwcToNchw", "layout and copies"},
    {"transpose", "layout and copies"},
    {"CatArray", "layout and copies"},
    {"copy", "layout and copies"},
    {"elementwise", "elementwise"},
    {"fill", "elementwise"},
};

template <typename Marks>
bool contains_any(std::string_view name, const Marks& marks) {
  return std::any_of(std::begin(marks), std::end(marks),
                     [name](std::string_view mark) { return name.find(mark) != name.npos; });
}

// "convert" is no convolution.
bool has_mark(std::string_view name, std::string_view mark) {
  for (size_t at = name.find(mark); at != name.npos; at = name.find(mark, at + 1)) {
    if (mark != "conv" || !name.substr(at).starts_with("convert")) return true;
  }
  return false;
}

// By the marks alone; empty: none is there.
std::string_view marked_family(std::string_view name) {
  for (const Mark& mark : kFamilies) {
    if (has_mark(name, mark.text)) return mark.family;
  }
  return {};
}

// Whether one of the words between underscores is a product: "mm", "addmm", "scaled_mm".
bool has_product(std::string_view name) {
  for (const std::string_view word : {"mm", "addmm", "bmm", "baddbmm"}) {
    for (size_t at = name.find(word); at != name.npos; at = name.find(word, at + 1)) {
      const size_t end = at + word.size();
      if (at > 0 && name[at - 1] == '_' && (end == name.size() || name[end] == '_')) return true;
    }
  }
  return false;
}

// Of TorchInductor, whose names begin with how a kernel is made (torch/_inductor/codegen/triton.py:
// pointwise, reduction, persistent reduction, template), and go on with the operators that are
// fused in it. These say nothing of a pointwise kernel's family, and of a template's the product
// decides. Empty: another's.
std::string_view inductor_family(std::string_view name) {
  if (name.starts_with("triton_poi_")) return "elementwise";
  const bool made_of_template = name.starts_with("triton_tem_");
  const bool reduces = name.starts_with("triton_red_") || name.starts_with("triton_per_");
  if (!made_of_template && !reduces) return {};
  const std::string_view family = marked_family(name);
  if (reduces) {
    return family == "normalization" || family == "softmax and loss" ? family : "reduction";
  }
  if (family == "attention" || family == "convolution") return family;
  return has_product(name) ? "matrix product" : family;
}

// XLA's loops over all elements, of one operation or of several.
bool is_loop_of_xla(std::string_view name) {
  return name.starts_with("wrapped_") ||
         (name.starts_with("loop_") && name.find("fusion") != name.npos);
}

bool is_letter(char c) { return c >= 'a' && c <= 'z'; }

// An instruction's shape as libraries write it, between its types and what is made of it:
// "s16816gemm", "h884cudnn". The number of a fusion stands alone.
bool names_instruction(std::string_view name) {
  for (const std::string_view shape : {"16816", "1688", "884"}) {
    for (size_t at = name.find(shape); at != name.npos; at = name.find(shape, at + 1)) {
      const size_t end = at + shape.size();
      if (at > 0 && is_letter(name[at - 1]) && end < name.size() && is_letter(name[end])) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

bool uses_tensor_cores(std::string_view name) {
  // Of instructions, of libraries whose kernels all use them (nvjet: cuBLAS on Hopper and later),
  // and of types that nothing else multiplies in a library's product.
  static constexpr std::string_view kMarks[] = {"tensorop",
                                                "TensorOp",
                                                "hmma",
                                                "imma",
                                                "wgmma",
                                                "_wmma_",
                                                "qgmma",
                                                "Gmma",
                                                "GMMA",
                                                "tcgen05",
                                                "tf32",
                                                "nvjet_",
                                                "flash_fwd",
                                                "flash_bwd",
                                                "FlashAttnFwdSm",
                                                "FlashAttnBwdSm",
                                                "fmhaSm",
                                                "Umma",
                                                "SM100_MMA",
                                                "deep_gemm::sm90_",
                                                "deep_gemm::sm100_",
                                                "deep_gemm::fp8_gemm",
                                                "hgemm",
                                                "bf16gemm",
                                                "fmha_cutlassF_f16",
                                                "fmha_cutlassF_bf16",
                                                "fmha_cutlassB_f16",
                                                "fmha_cutlassB_bf16"};
  static constexpr std::string_view kTypesOfXmma[] = {"bf16bf16", "f16f16", "e4m3", "e5m2", "i8i8"};
  if (multiplies_without_tensor_cores(name)) return false;
  if (contains_any(name, kMarks) || names_instruction(name)) return true;
  return name.find("xmma") != name.npos && contains_any(name, kTypesOfXmma);
}

TensorCores tensor_cores_of(std::string_view name) {
  if (uses_tensor_cores(name)) return TensorCores::used;
  if (multiplies_without_tensor_cores(name)) return TensorCores::none;
  const std::string_view family = kernel_family(name);
  const bool multiplies =
      family == "matrix product" || family == "convolution" || family == "attention";
  // Sums up what other kernels multiplied.
  const bool sums_up = name.find("splitKreduce") != name.npos;
  return multiplies && !sums_up ? TensorCores::not_known : TensorCores::none;
}

bool multiplies_without_tensor_cores(std::string_view name) {
  static constexpr std::string_view kMarks[] = {"simt_sgemm",   "_ffma_",        "volta_sgemm",
                                                "ampere_sgemm", "maxwell_sgemm", "simt_dgrad",
                                                "simt_fprop",   "simt_wgrad",    "_scudnn_"};
  return contains_any(name, kMarks);
}

std::string_view kernel_family(std::string_view name) {
  if (names_communication(name)) return "communication";
  std::string_view family = inductor_family(name);
  if (family.empty()) family = marked_family(name);
  if (!family.empty()) return family;
  return is_loop_of_xla(name) ? "elementwise" : "other";
}

}  // namespace gpuprof::analysis
