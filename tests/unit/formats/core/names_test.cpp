// SPDX-License-Identifier: Apache-2.0
// Which kernels count as communication, by the names that public traces and sources have.
#include "formats/core/names.h"

#include <gtest/gtest.h>

#include <string_view>

namespace gpuprof {
namespace {

TEST(NamesCommunication, KernelsOfNcclAndRccl) {
  for (const std::string_view name :
       {"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)",
        "ncclSymkDevKernel_AllReduce_AGxLL_R_sum_f32",
        "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL",
        "_Z43ncclSymkDevKernel_AllReduce_AGxLL_R_sum_f32", "void ncclTemplate<int>(ncclWork*)",
        "rccl_main_kernel(ncclDevComm*, unsigned long, ncclWork*)",
        "oneccl_allreduce_pcie<sycl::half, Rt64_128_PCIE, RingTransmit>"}) {
    EXPECT_TRUE(names_communication(name)) << name;
  }
}

TEST(NamesCommunication, KernelsThatExchangeWithoutNccl) {
  for (const std::string_view name :
       {"void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*, int)",
        "_ZN4vllm26cross_device_reduce_2stageI6__halfLi8EEEvPNS_8RankDataEi",
        "void (anonymous namespace)::two_shot_all_reduce_kernel_inplace<c10::BFloat16, 16, 2>()",
        "void (anonymous namespace)::multimem_one_shot_all_reduce_kernel<float, 16>(float*)",
        "void tensorrt_llm::kernels::oneShotAllReduceKernel<float, 2>(AllReduceParams)",
        "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<1>()",
        "void userbuffers_fp16_sum_inplace_gpu_rw_ag<8>(int, int)",
        "void stream_executor::gpu::AllReduceKernelImpl<__nv_bfloat16, (xla::ReductionKind)0, "
        "(stream_executor::gpu::AllReduceStrategy)0, (stream_executor::gpu::PlatformType)1>()",
        "_ZN15stream_executor3gpu19AllReduceKernelImplIfLN3xla13ReductionKindE0EEEvv",
        "void stream_executor::gpu::RaggedAllToAllKernelImpl<4l>(void const*)",
        "_ZN15stream_executor3gpu30RaggedAllToAllDeviceKernelImplILl16EEEv11ncclDevComm",
        "void "
        "stream_executor::gpu::MultiGpuBarrierKernelImpl<(stream_executor::gpu::PlatformType)1>()",
        "_ZN15stream_executor3gpu33MultiGpuBarrierWithNcclKernelImplEv",
        "void deep_ep::intranode::combine<__nv_bfloat16, 8, 768, 4096>(float*)",
        "_ZN7deep_ep12internode_ll8dispatchILb1EEEvPv",
        "void deep_ep::legacy::intranode::dispatch<8, 768, 8192>(int4*)",
        "void deep_ep::legacy::internode::combine<true>(int4*)",
        "_ZN7deep_ep6legacy9intranode7combineI13__nv_bfloat16Li8EEEvPv",
        "_ZN7deep_ep6legacy12internode_ll8dispatchILb1EEEvPv",
        "void deep_ep::elastic::dispatch_impl<true, 24, 8>(void*)",
        "_ZN7deep_ep7elastic12combine_implILi24EEEvPv",
        "void deep_ep::ep::hybrid_dispatch_impl<24>(void*)",
        "void hybrid_ep::dispatch_kernel<unsigned short, 4>(hybrid_ep::dispatch_kernel_param_t)",
        "void hybrid_ep::combine_kernel<4>(hybrid_ep::combine_kernel_param_t)",
        "void hybrid_ep::device_sync_kernel<64>(unsigned int*)",
        "_ZN9hybrid_ep18device_sync_kernelILi64EEEvPj",
        "void rdxn_on_stream_kernel<float, (rdxn_ops)5>(int, float*, float const*, unsigned long)",
        "void fcollect_on_stream_kernel<float>(int, float*, float const*, unsigned long)"}) {
    EXPECT_TRUE(names_communication(name)) << name;
  }
}

TEST(NamesCommunication, KernelsOfFlashInferAndTensorRt) {
  for (const std::string_view name :
       {"void flashinfer::trtllm_mnnvl_allreduce::twoshotAllreduceKernel<(unsigned char)4, "
        "__nv_bfloat16, true, float4>(flashinfer::trtllm_mnnvl_allreduce::AllReduceFusionParams)",
        "void flashinfer::trtllm_mnnvl_allreduce::oneshotAllreduceFusionKernel<(unsigned char)2, "
        "__nv_bfloat16, true>(flashinfer::trtllm_mnnvl_allreduce::AllReduceFusionParams)",
        "_ZN10flashinfer22trtllm_mnnvl_allreduce22twoshotAllreduceKernelILh4E13__nv_bfloat16Lb1E",
        "void flashinfer::trtllm_mnnvl_allreduce::rmsNormLamport<__nv_bfloat16, "
        "(flashinfer::QuantType)0, true, 8>(flashinfer::trtllm_mnnvl_allreduce::RMSNormParams)",
        "void tensorrt_llm::kernels::moe_comm::moeA2ADispatchKernel<8, false>(int const*)",
        "tensorrt_llm::kernels::moeAllToAllKernel(MoeEpWorldInfo, MoeCommWorkspace)",
        "_ZN12tensorrt_llm7kernels8moe_comm19moeA2ACombineKernelI6__halfLi8EEEvv"}) {
    EXPECT_TRUE(names_communication(name)) << name;
  }
}

TEST(NamesCommunication, KernelsOfSymmetricMemory) {
  for (const std::string_view name :
       {"c10d::symmetric_memory::barrier_kernel(unsigned int**, int, int, int, unsigned long)",
        "_ZN4c10d16symmetric_memoryL14barrier_kernelEPPjiiim",
        "c10d::symmetric_memory::put_signal_kernel(unsigned int**, int, int, int, int, unsigned "
        "long)",
        "_ZN4c10d16symmetric_memoryL18wait_signal_kernelEPPjiiiim",
        "void (anonymous namespace)::multimem_one_shot_reduce_kernel<float, 16>(float*, float*)",
        "void c10d::nccl_extension::reduce_scatter_offset_kernel<float, true>(ncclWindow_vidmem*)",
        "_ZN4c10d14nccl_extension28reduce_scatter_offset_kernelIfLb1EEEvP17ncclWindow_vidmem"}) {
    EXPECT_TRUE(names_communication(name)) << name;
  }
}

TEST(NamesCommunication, OthersCompute) {
  for (const std::string_view name :
       {"ampere_sgemm_128x64_tn", "input_reduce_fusion_3",
        "void at::native::reduce_kernel<512, 1>(at::native::ReduceOp)",
        "_Z9my_kernelP11ncclDevComm", "my_ncclLikeKernel(float*)",
        "void deep_ep::layout::get_dispatch_layout<256>(long const*)",
        "barrier_kernel(unsigned int*, int)", "put_signal_kernel(unsigned int*)",
        "tensorrt_llm::kernels::moe_comm::moeA2APrepareDispatchKernel(int*, int*, int)",
        "void c10d::detail::fill_kernel<float>(float*)",
        "void one_shot_reduction_kernel<float>(float*)",
        "void deep_ep::legacy::layout::get_dispatch_layout<256>(long const*)",
        "void deep_ep::elastic::dispatch_copy_epilogue_impl<true>(void*)",
        "_ZN7deep_ep2ep28combine_reduce_epilogue_implILi8EEEvPv",
        "void hybrid_ep::scan<8>(bool const*)", "oneccl_kernel_memcpy_typed<float>", "void", "_Z",
        ""}) {
    EXPECT_FALSE(names_communication(name)) << name;
  }
}

}  // namespace
}  // namespace gpuprof
