// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/host_memory.h"

#include <algorithm>
#include <map>

#include "formats/trace/heap.h"
#include "tools/analysis/code_place.h"

namespace gpuprof::analysis {
namespace {

template <typename Sums>
void add(const HeapSite& site, Sums& sums) {
  sums.samples += site.samples;
  sums.bytes += site.bytes;
  sums.count += site.count;
  sums.held_bytes += site.held_bytes;
}

}  // namespace

std::string host_memory_place(const StackTable& stacks, StackIndex stack) {
  CodePlace place = memory_place(stacks, stack);
  return place.text.empty() ? native_place(stacks, stack).text : place.text;
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
