// SPDX-License-Identifier: Apache-2.0
// Names as people (and Kineto's readers) know them: demangled ones, and those of CUDA's and NCCL's
// enum values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace gpuprof {

// "void gemm<float>(int)" for its mangled form. What is not a mangled name comes back as it is, and
// so does one whose text is over kMostDemangled times as long: each back reference in a name that
// was made to harm can double the text.
std::string demangle(std::string_view name);
inline constexpr size_t kMostDemangled = 64;

std::string_view copy_direction_name(uint32_t cupti_memcpy_kind);  // "HtoD", ... "Unknown"
std::string_view memory_kind_name(uint32_t cupti_memory_kind);  // "Pageable", "Pinned", "Device"...
// "GPU 0", "CPU", "XPU 1": a framework's device by its type (PyTorch's numbers) and ordinal.
std::string device_name(uint32_t type, uint32_t id);
std::string_view sync_type_name(uint32_t cupti_sync_type);  // "Stream Sync", ... "Unknown Sync"
std::string_view overhead_name(uint32_t cupti_overhead_kind);
std::string_view memory_operation_name(uint32_t cupti_operation);  // "Allocation", "Release"

// An NVTX payload of nvtxPayloadType_t `type` as JSON has it: "-3", "0.25", "\"nan\"". Empty where
// there is none. Without a type it is an unsigned number.
std::string nvtx_payload(uint32_t type, uint64_t bits);
bool is_nvtx_double(uint32_t type);  // or float
double nvtx_double(uint32_t type, uint64_t bits);
bool is_nvtx_signed(uint32_t type);
int64_t nvtx_signed(uint32_t type, uint64_t bits);

struct NcclTypeName {
  std::string_view nccl;    // "float32"
  std::string_view scalar;  // "Float", as PyTorch names a dtype
  std::string_view cxx;     // "float", as PyTorch prints an input type
  uint32_t bytes;           // of one element; 0: not known
};
const NcclTypeName& nccl_type(uint32_t data_type);
std::string_view nccl_operation_name(uint32_t operation);  // "sum", ...

// "allreduce" and "nccl:all_reduce" for "ncclAllReduce"; the name itself where it is not known.
struct CollectiveName {
  std::string_view kineto;
  std::string_view annotation;
};
CollectiveName collective_name(std::string_view function);

// What people call a process group of PyTorch's: its description, else its name. Programs that give
// none have "undefined".
std::string_view group_label(std::string_view name, std::string_view description);

// A function of the CUDA runtime without what differs by how a program was compiled:
// "cudaLaunchKernel" for "__cudaLaunchKernel" and "cudaLaunchKernel_ptsz".
std::string_view plain_runtime_name(std::string_view function);

}  // namespace gpuprof
