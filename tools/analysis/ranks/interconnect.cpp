// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/ranks/interconnect.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace gpuprof::analysis {
namespace {

LinkPeak nvlinks_of(const dump::NvLinks& links) {
  const double one = links.mbytes_per_s() / 1e3;
  if (links.active() == 0 || one <= 0) return {};
  return {links.active() * one, fmt::format("{} NVLink{} of {:.1f} GB/s", links.active(),
                                            links.active() == 1 ? "" : "s", one)};
}

// Where a host has InfiniBand, its Ethernet ports are taken for something else.
LinkPeak ports_of(const Process& process) {
  const auto of_layer = [&](std::string_view layer) -> LinkPeak {
    std::set<uint32_t> rates;
    uint64_t mbits = 0;
    size_t count = 0;
    for (const dump::NetworkPort& port : process.summary.network_port()) {
      if (port.link_layer() != layer || port.mbits_per_s() == 0) continue;
      rates.insert(port.mbits_per_s());
      mbits += port.mbits_per_s();
      ++count;
    }
    if (count == 0) return {};
    const std::string ports = fmt::format("{} {} port{}", count, layer, count == 1 ? "" : "s");
    const bool alike = rates.size() == 1;
    const double gbits = static_cast<double>(alike ? *rates.begin() : mbits) / 1e3;
    return {static_cast<double>(mbits) / 8e3,
            fmt::format("{} of {:g} Gb/s{}", ports, gbits, alike ? "" : " in all")};
  };
  LinkPeak infiniband = of_layer("InfiniBand");
  return infiniband.gbs > 0 ? infiniband : of_layer("Ethernet");
}

bool sent_by_host(std::string_view function) {
  constexpr std::string_view kFunctions[] = {"ncclAllReduce", "ncclAllGather", "ncclReduceScatter",
                                             "ncclBroadcast", "ncclReduce"};
  return std::find(std::begin(kFunctions), std::end(kFunctions), function) != std::end(kFunctions);
}

}  // namespace

void Interconnect::add(const Process& process) {
  const dump::Header& header = process.header;
  if (header.rank() < 0 || header.host().empty()) return;
  Rank& rank = ranks_[header.rank()];
  rank.host = header.host();
  for (const dump::NvLinks& links : process.summary.nvlinks()) {
    LinkPeak peak = nvlinks_of(links);
    if (peak.gbs > 0 && (rank.nvlinks.gbs == 0 || peak.gbs < rank.nvlinks.gbs)) {
      rank.nvlinks = std::move(peak);
    }
  }
  LinkPeak ports = ports_of(process);
  if (ports.gbs > 0) hosts_[rank.host] = std::move(ports);
}

LinkPeak Interconnect::peak_of(std::string_view function, std::span<const int32_t> ranks) const {
  std::set<std::string_view> hosts;
  for (const int32_t rank : ranks) {
    const auto known = ranks_.find(rank);
    if (known == ranks_.end()) return {};
    hosts.insert(known->second.host);
  }
  if (ranks.size() < 2 || (hosts.size() > 1 && !sent_by_host(function))) return {};
  const LinkPeak* least = nullptr;
  for (const int32_t rank : ranks) {
    const Rank& known = ranks_.at(rank);
    const LinkPeak* peak = &known.nvlinks;
    if (hosts.size() > 1) {
      const auto host = hosts_.find(known.host);
      if (host == hosts_.end()) return {};
      peak = &host->second;
    }
    if (peak->gbs <= 0) return {};
    if (!least || peak->gbs < least->gbs) least = peak;
  }
  return *least;
}

}  // namespace gpuprof::analysis
