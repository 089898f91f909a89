// SPDX-License-Identifier: Apache-2.0
#include "formats/core/names.h"

#include <cstring>

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
  for (size_t at = 0; at + part.size() <= name.size(); ++at) {
    if (std::memcmp(name.data() + at, part.data(), part.size()) == 0) return true;
  }
  return false;
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
  return contains(kernel, "ncclDevKernel") || contains(kernel, "ncclKernel") ||
         begins_with(kernel, "nccl");
}

}  // namespace gpuprof
