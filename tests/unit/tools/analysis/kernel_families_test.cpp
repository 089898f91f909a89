// SPDX-License-Identifier: Apache-2.0
// What kernels' names tell, by names that public traces and sources have.
#include "tools/analysis/kernel_families.h"

#include <gtest/gtest.h>

#include <string_view>
#include <utility>

namespace gpuprof::analysis {
namespace {

TEST(KernelNames, Families) {
  EXPECT_EQ(kernel_family("ncclDevKernel_AllReduce_Sum_f32_RING_LL"), "communication");
  EXPECT_EQ(kernel_family("ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_tn"), "matrix product");
  EXPECT_EQ(kernel_family("volta_scudnn_128x64_relu_interior_nn_v1"), "convolution");
  EXPECT_EQ(kernel_family("void pytorch_flash::flash_fwd_kernel<...>"), "attention");
  EXPECT_EQ(kernel_family("_Z3fooPf"), "other");
  EXPECT_EQ(kernel_family("main_loop_kernel"), "other");
  EXPECT_EQ(kernel_family("convert_then_conv2d"), "convolution");
  // XLA's.
  EXPECT_EQ(kernel_family("loop_convert_fusion"), "elementwise");
  EXPECT_EQ(kernel_family("loop_add_fusion_884"), "elementwise");
  EXPECT_EQ(kernel_family("wrapped_convert"), "elementwise");
  EXPECT_EQ(kernel_family("input_convert_reduce_fusion"), "reduction");
  EXPECT_EQ(kernel_family("loop_transpose_fusion"), "layout and copies");
  EXPECT_EQ(kernel_family("gemm_fusion_dot_3"), "matrix product");
  for (const char* name :
       {"loop_add_fusion_884", "wrapped_add_1688", "input_reduce_fusion_16816"}) {
    EXPECT_FALSE(uses_tensor_cores(name)) << name;
  }
  // Of an H200, CUDA 13.0.
  for (const char* name :
       {"ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_tn",
        "nvjet_sm90_tst_192x128_64x5_1x2_h_bz_coopB_NNT",
        "sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x64_"
        "warpgroupsize1x1x1_g1_execute_segment_k_off_kernel__5x_cudnn",
        "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize64x64x32_warpgroupsize1x1x1_execute_kernel",
        "cudnn_generated_fort_native_sdpa_sm80_flash_fprop_wmma_f16_knob_3_64x64x64_4x1x1_cga1x1x1",
        "volta_h884gemm_64x64_ldg8_nn",
        "turing_fp16_s1688cudnn_fp16_128x128_ldg8_relu_f2f_exp_nhwc",
        "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128_16x4_nn_align4>"}) {
    EXPECT_TRUE(uses_tensor_cores(name)) << name;
    EXPECT_FALSE(multiplies_without_tensor_cores(name)) << name;
  }
  for (const char* name :
       {"void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>",
        "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize128x64x8_stage3_warpsize2x2x1_ffma_aligna4_"
        "alignc4_execute_kernel__5x_cublas"}) {
    EXPECT_FALSE(uses_tensor_cores(name)) << name;
    EXPECT_TRUE(multiplies_without_tensor_cores(name)) << name;
  }
  EXPECT_FALSE(multiplies_without_tensor_cores("gemm_fusion_dot_3")) << "not known";
}

TEST(KernelNames, FamiliesOfInferenceEngines) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<"
       "flash::CollectiveMainloopFwdSm90<2, cute::tuple<cute::C<1> > > > > >(flash::Params)",
       "attention"},
      {"void flashinfer::BatchPrefillWithPagedKVCacheKernel<flashinfer::KernelTraits<1> >(Params)",
       "attention"},
      {"void flashinfer::BatchDecodeWithPagedKVCacheKernel<(flashinfer::PosEncodingMode)0>()",
       "attention"},
      {"void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, __nv_bfloat16>(T)",
       "layout and copies"},
      {"fused_moe_kernel", "matrix product"},
      {"_w8a8_block_fp8_matmul", "matrix product"},
      {"void tensorrt_llm::topkGatingSoftmax<float, 8, 128, 4, 16>(float const*)",
       "softmax and loss"},
      {"void cudnn::batchnorm_fwtr_nhwc_semiPersist<__half, __half, float>(cudnn::T)",
       "normalization"},
      {"void at::native::bitonicSortKVInPlace<2, -1, 16, 16, long, bool>(TensorInfo<long>)",
       "sort and scan"},
      {"void at_cuda_detail::cub::DeviceRadixSortOnesweepKernel<Policy900>(T)", "sort and scan"}};
  for (const auto& [name, family] : kNames) EXPECT_EQ(kernel_family(name), family) << name;
}

TEST(KernelNames, FamiliesOfInductor) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"triton_tem_fused_mm_0", "matrix product"},
      {"triton_tem_fused_addmm_relu_3", "matrix product"},
      {"triton_tem_fused__scaled_mm_native_layer_norm_1", "matrix product"},
      {"triton_tem_fused_convolution_2", "convolution"},
      {"triton_tem_fused_flex_attention_0", "attention"},
      {"triton_tem_fused_0", "other"},
      {"triton_poi_fused_convolution_relu_0", "elementwise"},
      {"triton_poi_fused_addmm_native_dropout_gelu_1", "elementwise"},
      {"triton_red_fused_convolution_sum_1", "reduction"},
      {"triton_per_fused_embedding_mean_4", "reduction"},
      {"triton_per_fused_native_layer_norm_2", "normalization"},
      {"triton_red_fused__softmax_3", "softmax and loss"}};
  for (const auto& [name, family] : kNames) EXPECT_EQ(kernel_family(name), family) << name;
}

TEST(KernelNames, TensorCores) {
  for (const std::string_view name :
       {"void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int>, "
        "cutlass::gemm::collective::CollectiveMma<"
        "cutlass::gemm::MainloopSm100TmaUmmaWarpSpecialized<13, 2, 4> > > >(Params)",
        "void cutlass::device_kernel<GemmUniversal<cute::SM100_MMA_F16BF16_SS<float> > >(Params)",
        "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<T> > >()",
        "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnBwdSm90<T> > >()",
        "fmhaSm100fKernel_QkvE4m3OBfloat16H512PagedKvDenseP1VarSeqQ16Kv128PersistentSwapsAbForGen",
        "void deep_gemm::sm90_fp8_gemm_1d2d_impl<0u, 128u, 5120u>(CUtensorMap_st)"}) {
    EXPECT_EQ(tensor_cores_of(name), TensorCores::used) << name;
  }
  for (const std::string_view name :
       {"gemm_fusion_dot_3", "triton_tem_fused_mm_0", "fused_moe_kernel", "my_attention"}) {
    EXPECT_EQ(tensor_cores_of(name), TensorCores::not_known) << name;
  }
  for (const std::string_view name :
       {"void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>",
        "void cublasLt::splitKreduce_kernel<32, 16, int, float>(T)", "triton_poi_fused_addmm_0",
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "void deep_gemm::transpose_fp32<512u>(T)"}) {
    EXPECT_EQ(tensor_cores_of(name), TensorCores::none) << name;
  }
}

}  // namespace
}  // namespace gpuprof::analysis
