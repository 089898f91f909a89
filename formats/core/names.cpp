// SPDX-License-Identifier: Apache-2.0
#include "formats/core/names.h"

#include <algorithm>
#include <iterator>

#include "formats/core/own_time.h"

namespace gpuprof {
namespace {

// In any case; `prefix` is in small letters.
bool begins_with(std::string_view name, std::string_view prefix) {
  if (name.size() < prefix.size()) return false;
  for (size_t i = 0; i < prefix.size(); ++i) {
    const char c = name[i];
    if ((c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c) != prefix[i]) return false;
  }
  return true;
}

bool contains(std::string_view name, std::string_view part) {
  return name.find(part) != std::string_view::npos;
}

template <typename Parts>
bool contains_any(std::string_view name, const Parts& parts) {
  return std::any_of(std::begin(parts), std::end(parts),
                     [name](std::string_view part) { return contains(name, part); });
}

// Parts of the names of kernels that exchange data between GPUs without NCCL, and wait for them.
// Those that have kReduces; few kernels do, so that the rest costs little.
constexpr std::string_view kReduces = "educe";
constexpr std::string_view kReductions[] = {
    "cross_device_reduce_",     // custom_all_reduce.cuh of vLLM, SGLang and AITER
    "_all_reduce_kernel",       // PyTorch's CUDASymmetricMemoryOps.cu,
    "_one_shot_reduce_kernel",  // to one rank
    "ShotAllReduceKernel",      // TensorRT-LLM's customAllReduceKernels.cu
    "shotAllreduce",            // its mnnvlAllreduceKernels.cu, and FlashInfer's
    "allreduce_fusion_kernel",  // its allReduceFusionKernels.cu, and FlashInfer's
    "AllReduceKernelImpl",      // XLA's all_reduce_kernel_lib.cu.h (stream_executor/gpu)
};
constexpr std::string_view kExchanges[] = {
    "multimem_all_gather_kernel",  // PyTorch's CUDASymmetricMemoryOps.cu
    "userbuffers_",                // Transformer Engine's userbuffers.cu
    "moeA2ADispatchKernel",        // TensorRT-LLM's moeAlltoAllKernels.cu,
    "moeA2ACombineKernel",         // and FlashInfer's
    "moeAllToAllKernel",           // TensorRT-LLM's moeCommKernels.cu and fusedMoeCommKernels.cu
    "rmsNormLamport",              // both's, after a two-shot all-reduce: waits for the peers' sums
    "nvshmem",                     // NVSHMEM's own,
    "alltoall_on_stream_kernel",   // and those of its calls from the host
    "barrier_on_stream_kernel",    // (nvshmemi_h_to_d_coll_defs.cuh)
    "broadcast_on_stream_kernel",
    "fcollect_on_stream_kernel",
    "rdxn_on_stream_kernel",
    "reducescatter_on_stream_kernel",
    "sync_on_stream_kernel",
    "sync_all_on_stream_kernel",
    "RaggedAllToAllKernel",        // XLA's ragged_all_to_all_kernel_lib.cu.h,
    "RaggedAllToAllDeviceKernel",  // ragged_all_to_all_device_kernel_lib.cu.h
    "MultiGpuBarrier",             // and multi_gpu_barrier_kernel.cu.h
};
// DeepEP's intranode.cu, internode.cu and internode_ll.cu, later in csrc/kernels/legacy, and its
// kernels of deep_ep/include/deep_ep/impls, plain and mangled. Its layout.cu computes, and so do
// kernels there that copy or sum up what has come already.
constexpr std::string_view kDeepEp = "deep_ep";
constexpr std::string_view kOfDeepEp[] = {"deep_ep::intra",
                                          "deep_ep::inter",
                                          "deep_ep9intranode",
                                          "deep_ep9internode",
                                          "deep_ep12internode_ll",
                                          "deep_ep::legacy::intra",
                                          "deep_ep::legacy::inter",
                                          "deep_ep6legacy9intranode",
                                          "deep_ep6legacy9internode",
                                          "6legacy12internode_ll",
                                          "deep_ep::elastic::",
                                          "deep_ep7elastic",
                                          "deep_ep::ep::",
                                          "deep_ep2ep"};
constexpr std::string_view kLocalOfDeepEp[] = {"_epilogue", "_prologue"};
// Its branch hybrid-ep (hybrid_ep_backend.cuh); its scans and permutations compute.
constexpr std::string_view kHybridEp = "hybrid_ep";
constexpr std::string_view kOfHybridEp[] = {
    "hybrid_ep::dispatch_kernel", "hybrid_ep::combine_kernel", "hybrid_ep::device_sync_kernel",
    "hybrid_ep15dispatch_kernel", "hybrid_ep14combine_kernel", "hybrid_ep18device_sync_kernel"};

// oneCCL's sycl_coll_base.hpp and pre_operation kernels; PyTorch's NanCheck.cu.
constexpr std::string_view kLocalParts[] = {"oneccl_kernel_memcpy", "oneccl_pre_operation",
                                            "checkForNaN"};

// PyTorch's CUDASymmetricMemory.cu (barriers and signals, which spin until a peer comes) and
// nccl_extension.cu with ops/ beside it, plain and mangled.
constexpr std::string_view kC10d = "c10d";
constexpr std::string_view kOfC10d[] = {"c10d::symmetric_memory::", "c10d::nccl_extension::",
                                        "4c10d16symmetric_memory", "4c10d14nccl_extension"};

// From the name of a kernel's function on: without the result of a template's, or what an Itanium
// ABI's mangled name has before the first identifier.
std::string_view function_of(std::string_view kernel) {
  if (begins_with(kernel, "void ")) {
    kernel.remove_prefix(5);
  } else if (begins_with(kernel, "_z")) {
    kernel.remove_prefix(2);
    while (!kernel.empty() && kernel.front() >= '0' && kernel.front() <= '9')
      kernel.remove_prefix(1);
  }
  return kernel;
}

// "ncclDevKernel_...", "ncclKernel_...", "ncclSymkDevKernel_..."; RCCL's are called so, too, but
// for that of some releases. oneCCL's are "oneccl_allreduce_pcie<...>" and the like.
bool is_of_nccl(std::string_view function) {
  return begins_with(function, "nccl") || begins_with(function, "rccl_main_kernel") ||
         (begins_with(function, "oneccl_") && !names_local_part(function));
}

}  // namespace

std::string_view loss_name(Loss loss) {
  switch (loss) {
    case Loss::buffer_full: return "buffer_full";
    case Loss::string_table_full: return "string_table_full";
    case Loss::shape_table_full: return "shape_table_full";
    case Loss::cupti_dropped: return "cupti_dropped";
    case Loss::cupti_unknown: return "cupti_unknown";
    case Loss::bad_timestamp: return "bad_timestamp";
    case Loss::write_error: return "write_error";
    case Loss::step_log_full: return "step_log_full";
    case Loss::unfinished_gpu: return "unfinished_gpu";
    case Loss::nvtx_depth: return "nvtx_depth";
    case Loss::graph_untimed: return "graph_untimed";
    case Loss::cupti_incomplete: return "cupti_incomplete";
    case Loss::stack_table_full: return "stack_table_full";
    case Loss::operator_depth: return "operator_depth";
    case Loss::sample_torn: return "sample_torn";
    case Loss::memory_log_full: return "memory_log_full";
    case Loss::heap_table_full: return "heap_table_full";
    case Loss::gpu_unjoined: return "gpu_unjoined";
    case Loss::name_cut: return "name_cut";
    case Loss::event_captured: return "event_captured";
    case Loss::event_untimed: return "event_untimed";
  }
  return "unknown";
}

bool names_data_loading(std::string_view name) {
  return begins_with(name, "enumerate(dataloader)#") || begins_with(name, "dataloader");
}

bool names_communication(std::string_view kernel) {
  if (is_of_nccl(function_of(kernel))) return true;
  return (contains(kernel, kReduces) && contains_any(kernel, kReductions)) ||
         contains_any(kernel, kExchanges) ||
         (contains(kernel, kDeepEp) && contains_any(kernel, kOfDeepEp) &&
          !contains_any(kernel, kLocalOfDeepEp)) ||
         (contains(kernel, kHybridEp) && contains_any(kernel, kOfHybridEp)) ||
         (contains(kernel, kC10d) && contains_any(kernel, kOfC10d));
}

bool names_local_part(std::string_view kernel) { return contains_any(kernel, kLocalParts); }

bool is_profiling_overhead(uint32_t type) {
  constexpr uint32_t kFlush = 1 << 16, kInstrumentation = 2 << 16, kResource = 3 << 16,
                     kBufferRequest = 7 << 16;  // CUpti_ActivityOverheadKind
  return is_own_time(type) || type == kFlush || type == kInstrumentation || type == kResource ||
         type == kBufferRequest;
}

}  // namespace gpuprof
