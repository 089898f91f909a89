// SPDX-License-Identifier: Apache-2.0
// Which link bounds a collective, and what it can carry.
#include "tools/analysis/ranks/interconnect.h"

#include <gtest/gtest.h>

#include <vector>

namespace gpuprof::analysis {
namespace {

struct Ports {
  int count;
  uint32_t mbits;
  const char* layer;
};

Process rank_of(int rank, const char* host, uint32_t links, uint32_t mbytes,
                const std::vector<Ports>& ports = {}) {
  Process process;
  process.header.set_rank(rank);
  process.header.set_host(host);
  if (links > 0) {
    dump::NvLinks* const out = process.summary.add_nvlinks();
    out->set_active(links), out->set_version(6), out->set_mbytes_per_s(mbytes);
  }
  for (const Ports& each : ports) {
    for (int i = 0; i < each.count; ++i) {
      dump::NetworkPort* const out = process.summary.add_network_port();
      out->set_mbits_per_s(each.mbits), out->set_link_layer(each.layer);
    }
  }
  return process;
}

Interconnect job(const std::vector<Process>& ranks) {
  Interconnect out;
  for (const Process& each : ranks) out.add(each);
  return out;
}

TEST(Interconnect, WithinAHostNvLinksOfTheSlowestGpu) {
  std::vector<Process> ranks;
  ranks.push_back(rank_of(0, "a", 18, 26562));
  ranks.push_back(rank_of(1, "a", 16, 26562));
  const LinkPeak peak = job(ranks).peak_of("ncclAlltoAll", std::vector<int32_t>{0, 1});
  EXPECT_NEAR(peak.gbs, 16 * 26.562, 1e-9);
  EXPECT_EQ(peak.link, "16 NVLinks of 26.6 GB/s");
}

TEST(Interconnect, BetweenHostsAllPortsOfTheSlowestHost) {
  std::vector<Process> ranks;
  ranks.push_back(
      rank_of(0, "a", 18, 26562, {{8, 400'000, "InfiniBand"}, {1, 25'000, "Ethernet"}}));
  ranks.push_back(rank_of(1, "b", 18, 26562, {{7, 400'000, "InfiniBand"}}));
  const Interconnect both = job(ranks);
  const std::vector<int32_t> members = {0, 1};
  const LinkPeak peak = both.peak_of("ncclAllReduce", members);
  EXPECT_NEAR(peak.gbs, 350, 1e-9);
  EXPECT_EQ(peak.link, "7 InfiniBand ports of 400 Gb/s");
  EXPECT_EQ(both.peak_of("ncclAlltoAll", members).gbs, 0) << "each rank sends on its own";
  EXPECT_EQ(both.peak_of("ncclSend, ncclRecv", members).gbs, 0);
}

TEST(Interconnect, EthernetWhereThereIsNoInfiniBand) {
  std::vector<Process> ranks;
  for (int i = 0; i < 2; ++i) {
    ranks.push_back(
        rank_of(i, i ? "b" : "a", 0, 0, {{1, 100'000, "Ethernet"}, {1, 200'000, "Ethernet"}}));
  }
  const LinkPeak peak = job(ranks).peak_of("ncclReduceScatter", std::vector<int32_t>{0, 1});
  EXPECT_NEAR(peak.gbs, 37.5, 1e-9);
  EXPECT_EQ(peak.link, "2 Ethernet ports of 300 Gb/s in all");
}

TEST(Interconnect, NothingIsClaimedOfWhatIsNotKnown) {
  std::vector<Process> ranks;
  ranks.push_back(rank_of(0, "a", 18, 26562));
  ranks.push_back(rank_of(1, "a", 0, 0));
  ranks.push_back(rank_of(2, "a", 18, 0));
  ranks.push_back(rank_of(3, "b", 18, 26562, {{1, 400'000, "InfiniBand"}}));
  ranks.push_back(rank_of(4, "", 18, 26562));
  ranks.push_back(rank_of(5, "c", 18, 26562, {{1, 0, "InfiniBand"}}));
  const Interconnect all = job(ranks);
  for (const std::vector<int32_t>& members :
       std::vector<std::vector<int32_t>>{{0, 1}, {0, 2}, {0, 3}, {3, 5}, {0, 4}, {0, 9}, {0}, {}}) {
    EXPECT_EQ(all.peak_of("ncclAllReduce", members).gbs, 0) << members.size();
    EXPECT_EQ(all.peak_of("ncclAllReduce", members).link, "");
  }
}

}  // namespace
}  // namespace gpuprof::analysis
