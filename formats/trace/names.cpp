// SPDX-License-Identifier: Apache-2.0
#include "formats/trace/names.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <span>

#include "formats/core/own_time.h"

namespace gpuprof {
namespace {

std::string_view pick(std::span<const std::string_view> names, uint32_t index,
                      std::string_view otherwise) {
  return index < names.size() ? names[index] : otherwise;
}

// nvtxPayloadType_t.
constexpr uint32_t kInt64 = 2, kDouble = 3, kUint32 = 4, kInt32 = 5, kFloat = 6;

}  // namespace

bool is_nvtx_double(uint32_t type) { return type == kDouble || type == kFloat; }
bool is_nvtx_signed(uint32_t type) { return type == kInt64 || type == kInt32; }

double nvtx_double(uint32_t type, uint64_t bits) {
  return type == kFloat ? std::bit_cast<float>(static_cast<uint32_t>(bits))
                        : std::bit_cast<double>(bits);
}

int64_t nvtx_signed(uint32_t type, uint64_t bits) {
  return type == kInt32 ? static_cast<int32_t>(bits) : static_cast<int64_t>(bits);
}

std::string nvtx_payload(uint32_t type, uint64_t bits) {
  if (is_nvtx_signed(type)) return fmt::format("{}", nvtx_signed(type, bits));
  if (is_nvtx_double(type)) {
    const double value = nvtx_double(type, bits);
    return std::isfinite(value) ? fmt::format("{}", value) : fmt::format("\"{}\"", value);
  }
  if (type == kUint32) return fmt::format("{}", static_cast<uint32_t>(bits));
  const bool none = type == UINT32_MAX && bits == 0;
  return none ? std::string() : fmt::format("{}", bits);
}

std::string_view copy_direction_name(uint32_t kind) {
  static constexpr std::array<std::string_view, 11> kNames{
      "Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"};
  return pick(kNames, kind, "Unknown");
}

std::string_view memory_kind_name(uint32_t kind) {
  static constexpr std::array<std::string_view, 8> kNames{
      "Unknown", "Pageable", "Pinned",        "Device",
      "Array",   "Managed",  "Device Static", "Managed Static"};
  return pick(kNames, kind, "Unknown");
}

std::string device_name(uint32_t type, uint32_t id) {
  // c10::DeviceType
  static constexpr std::array<std::string_view, 21> kTypes{
      "CPU",  "GPU",  "MKLDNN", "OpenGL", "OpenCL", "IDEEP", "HIP",
      "FPGA", "MAIA", "XLA",    "Vulkan", "Metal",  "XPU",   "MPS",
      "Meta", "HPU",  "VE",     "Lazy",   "IPU",    "MTIA",  "PrivateUse1"};
  std::string name(pick(kTypes, type, "device"));
  if (id != 0xffffffff) name += " " + std::to_string(id);
  return name;
}

std::string_view sync_type_name(uint32_t type) {
  static constexpr std::array<std::string_view, 5> kNames{
      "Unknown Sync", "Event Sync", "Stream Wait Event", "Stream Sync", "Context Sync"};
  return pick(kNames, type, "Unknown Sync");
}

std::string_view overhead_name(uint32_t kind) {
  static constexpr std::array<std::string_view, kOwnTimeKinds> kOwnNames{
      "Call Stacks", "Record Buffer", "CUPTI Buffers", "Step Mark", "Python Hooks", "CUPTI Attach"};
  if (is_own_time(kind)) return kOwnNames[kind - kOwnTimes - 1];
  static constexpr std::array<std::string_view, 9> kNames{"Unknown",
                                                          "Buffer Flush",
                                                          "Instrumentation",
                                                          "Resource",
                                                          "Runtime Triggered Module Loading",
                                                          "Lazy Function Loading",
                                                          "Command Buffer Full",
                                                          "Activity Buffer Request",
                                                          "UVM Activity Init"};
  if (kind == 1) return "Driver Compiler";
  return kind & 0xffff ? "Unknown" : pick(kNames, kind >> 16, "Unknown");
}

std::string_view memory_operation_name(uint32_t operation) {
  static constexpr std::array<std::string_view, 3> kNames{"Unknown", "Allocation", "Release"};
  return pick(kNames, operation, "Unknown");
}

const NcclTypeName& nccl_type(uint32_t data_type) {
  static constexpr std::array<NcclTypeName, 12> kNames{{
      {"int8", "Char", "signed char", 1},
      {"uint8", "Byte", "unsigned char", 1},
      {"int32", "Int", "int", 4},
      {"uint32", "UInt32", "unsigned int", 4},
      {"int64", "Long", "long int", 8},
      {"uint64", "UInt64", "unsigned long", 8},
      {"float16", "Half", "c10::Half", 2},
      {"float32", "Float", "float", 4},
      {"float64", "Double", "double", 8},
      {"bfloat16", "BFloat16", "c10::BFloat16", 2},
      {"float8e4m3", "Float8_e4m3fn", "c10::Float8_e4m3fn", 1},
      {"float8e5m2", "Float8_e5m2", "c10::Float8_e5m2", 1},
  }};
  static constexpr NcclTypeName kUnknown{"", "", "", 0};
  return data_type < kNames.size() ? kNames[data_type] : kUnknown;
}

std::string_view nccl_operation_name(uint32_t operation) {
  static constexpr std::array<std::string_view, 5> kNames{"sum", "prod", "max", "min", "avg"};
  return pick(kNames, operation, "");
}

CollectiveName collective_name(std::string_view function) {
  struct Row {
    std::string_view function;
    CollectiveName name;
  };
  static constexpr std::array<Row, 13> kRows{{
      {"ncclAllReduce", {"allreduce", "nccl:all_reduce"}},
      {"ncclBroadcast", {"broadcast", "nccl:broadcast"}},
      {"ncclBcast", {"broadcast", "nccl:broadcast"}},
      {"ncclReduce", {"reduce", "nccl:reduce"}},
      {"ncclAllGather", {"allgather", "nccl:all_gather"}},
      {"ncclReduceScatter", {"reduce_scatter", "nccl:reduce_scatter"}},
      {"ncclAlltoAll", {"alltoall", "nccl:all_to_all"}},
      {"ncclAllToAll", {"alltoall", "nccl:all_to_all"}},
      {"ncclAllToAllv", {"alltoallv", "nccl:all_to_all"}},
      {"ncclGather", {"gather", "nccl:gather"}},
      {"ncclScatter", {"scatter", "nccl:scatter"}},
      {"ncclSend", {"send", "nccl:send"}},
      {"ncclRecv", {"recv", "nccl:recv"}},
  }};
  // NCCL 2.32's with a configuration do the same.
  constexpr std::string_view kConfig = "Config";
  const std::string_view plain =
      function.ends_with(kConfig) ? function.substr(0, function.size() - kConfig.size()) : function;
  for (const Row& row : kRows) {
    if (row.function == plain) return row.name;
  }
  return {function, function};
}

std::string_view group_label(std::string_view name, std::string_view description) {
  return description.empty() || description == "undefined" ? name : description;
}

std::string_view plain_runtime_name(std::string_view function) {
  if (function.starts_with("__cuda")) function.remove_prefix(2);
  for (const std::string_view end : {"_ptsz", "_ptds"}) {
    if (function.ends_with(end)) function.remove_suffix(end.size());
  }
  return function;
}

}  // namespace gpuprof
