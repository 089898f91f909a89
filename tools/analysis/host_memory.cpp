// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/host_memory.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>

#include "formats/trace/heap.h"
#include "tools/analysis/code_place.h"

namespace gpuprof::analysis {
namespace {

// Functions that allocate for whoever called them.
constexpr std::string_view kAllocators[] = {
    "operator new",   "std::",          "void std::",    "__gnu_cxx::",
    "c10::alloc_cpu", "c10::Default",   "PyMem_",        "PyObject_",
    "_PyMem_",        "_PyObject_",     "malloc",        "calloc",
    "realloc",        "posix_memalign", "aligned_alloc", "memalign",
    "strdup",         "__strdup",       "mmap"};

template <typename Sums>
void add(const HeapSite& site, Sums& sums) {
  sums.samples += site.samples;
  sums.bytes += site.bytes;
  sums.count += site.count;
  sums.held_bytes += site.held_bytes;
}

}  // namespace

std::string host_memory_place(const StackTable& stacks, StackIndex stack) {
  CodePlace place = native_place(stacks, stack);
  if (place.own || place.text.empty()) return place.text;
  for (const uint64_t address : stacks[stack]) {
    for (const Frame& frame : stacks.frames(address)) {
      const auto begins = [&](std::string_view name) { return frame.function.starts_with(name); };
      if (std::none_of(std::begin(kAllocators), std::end(kAllocators), begins)) {
        return frame.function;
      }
    }
  }
  return place.text;
}

HostMemory host_memory(const Trace& trace) {
  HostMemory out;
  std::map<std::string, HostMemoryRow> rows;
  for (const Process& process : trace.processes) {
    for (const HeapSite& site : heap_sites(process)) {
      std::string place = host_memory_place(process.stacks, site.stack);
      if (place.empty()) place = "not known";
      add(site, rows[place]);
      add(site, out);
    }
  }
  for (auto& [place, row] : rows) {
    row.place = place;
    out.rows.push_back(std::move(row));
  }
  std::stable_sort(
      out.rows.begin(), out.rows.end(),
      [](const HostMemoryRow& a, const HostMemoryRow& b) { return a.bytes > b.bytes; });
  return out;
}

}  // namespace gpuprof::analysis
