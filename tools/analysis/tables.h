// SPDX-License-Identifier: Apache-2.0
// Sums of the steps' work and calls, by what they are.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tools/analysis/tensor_types.h"
#include "tools/analysis/timeline.h"

namespace gpuprof::analysis {

struct KernelRow {
  std::string name;        // demangled
  std::string short_name;  // short_names.h
  uint64_t count = 0;
  double total_us = 0;
  WorkClass kind = WorkClass::compute;
  Dim3 grid{}, block{};   // of the launch shape that took most time
  uint64_t shapes = 0;    // how many launch shapes there are
  int occupancy_pct = 0;  // of that shape, 0: not known
  // Of the multiprocessors: how many have a block of that shape's grid. 0: not known.
  double multiprocessors_pct = 0;
  bool tensor_cores = false;  // as far as the name tells
};

// Kernels that do the same sort of thing, as far as names tell.
struct FamilyRow {
  std::string name;
  uint64_t count = 0;
  double total_us = 0;
  double tensor_core_us = 0;          // of it, in kernels that use Tensor cores
  double tensor_core_unknown_us = 0;  // of it, in products whose names do not tell
};

struct CopyRow {
  std::string name;  // "Memcpy HtoD (Pageable -> Device)"
  uint64_t count = 0, bytes = 0;
  double total_us = 0;
  double asynchronous_us = 0;  // of it, of pinned memory by calls that do not wait; known to be
  // The same of the time in which neither a kernel nor another copy before it ran.
  double exposed_us = 0, exposed_asynchronous_us = 0;
  bool pageable = false;
  double gigabytes_per_second() const {
    return total_us > 0 ? static_cast<double>(bytes) / total_us / 1e3 : 0;
  }
};

// Copies of a process from the GPU that have one of the same size to it beside them.
struct CopiesBack {
  uint64_t count = 0;
  double bytes = 0;
};

struct CollectiveRow {
  std::string name;
  std::string group;  // group_label() of its process group; empty: not known
  uint64_t count = 0, bytes = 0;
  uint64_t unsized = 0;  // of them, those whose bytes are not known
  double total_us = 0;   // of its kernels, with waiting for other ranks
};

// A process group of the program's, the same on all its ranks.
struct GroupRow {
  std::string name, description;
  std::string ranks;   // in the job, as a JSON array; empty: not known
  uint64_t count = 0;  // collectives, on all its ranks
};

struct CallRow {  // syncs, allocations
  std::string name;
  uint64_t count = 0;
  double total_us = 0;
};

struct Memory {
  // Allocated from the driver in the window and not released; with the memory log also before it.
  // Of a framework's allocator, where it gave out more (blocks of memory from before the window):
  // that.
  int64_t peak_bytes = 0, end_bytes = 0;
  uint64_t allocations = 0, releases = 0;
  double peak_us = 0;        // since the window began
  bool before_known = true;  // false: what was held before the window is missing in the bytes
};

struct Tables {
  std::vector<KernelRow> kernels;  // most time first
  std::vector<FamilyRow> kernel_families;
  std::vector<CopyRow> copies;
  CopiesBack copies_back;
  std::vector<CollectiveRow> collectives;
  std::vector<GroupRow> process_groups;  // in order of description and ranks
  std::vector<CallRow> synchronizations, allocations;
  std::vector<Memory> memory;          // by timeline
  uint64_t launches = 0;               // calls that launch
  double launch_us = 0;                // the calls' own time
  uint64_t graph_launches = 0;         // of them, those of a CUDA graph
  double tiny_kernels_pct = 0;         // kernels below kTinyKernelNs, of all
  double tensor_core_pct = 0;          // of the time of compute kernels
  double tensor_core_unknown_pct = 0;  // likewise, of products whose names do not tell
  double whole_graph_us = 0;           // of CUDA graphs that have one time for all they ran
  double event_graph_us = 0;           // of it, timed by CUDA events
  // The least of the devices that ran kernels.
  TensorTypes tensor_types = TensorTypes::not_known;
};

inline constexpr int64_t kTinyKernelNs = 10'000;

// All work and calls that begin in the steps of the timelines.
Tables make_tables(std::span<const Timeline> timelines);

}  // namespace gpuprof::analysis
