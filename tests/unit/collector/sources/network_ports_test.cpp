// SPDX-License-Identifier: Apache-2.0
// The kernel's list of InfiniBand and RoCE ports, as folders with its words.
#include "collector/sources/network_ports.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace gpuprof {
namespace {

namespace fs = std::filesystem;

class NetworkPorts : public testing::Test {
 protected:
  NetworkPorts()
      : folder_(fs::temp_directory_path() / ("gpuprof_ports_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~NetworkPorts() override { fs::remove_all(folder_); }

  void add(const std::string& adapter, const std::string& port, const std::string& state,
           const std::string& rate, const std::string& layer) {
    const fs::path place = folder_ / adapter / "ports" / port;
    fs::create_directories(place);
    std::ofstream(place / "state") << state << "\n";
    if (!rate.empty()) std::ofstream(place / "rate") << rate << "\n";
    if (!layer.empty()) std::ofstream(place / "link_layer") << layer << "\n";
  }

  std::vector<std::string> read() const {
    NetworkPort ports[kMostNetworkPorts];
    const size_t count = read_network_ports(folder_.c_str(), ports);
    std::vector<std::string> out;
    for (size_t i = 0; i < count; ++i) {
      out.push_back(std::string(ports[i].adapter) + " " + std::to_string(ports[i].number) + " " +
                    std::to_string(ports[i].mbits_per_s) + " " + ports[i].link_layer);
    }
    std::sort(out.begin(), out.end());
    return out;
  }

  const fs::path folder_;
};

TEST_F(NetworkPorts, ActiveOnesWithTheirRate) {
  add("mlx5_0", "1", "4: ACTIVE", "400 Gb/sec (4X NDR)", "InfiniBand");
  add("mlx5_1", "1", "1: DOWN", "10 Gb/sec (4X SDR)", "InfiniBand");
  add("mlx5_2", "1", "4: ACTIVE", "25 Gb/sec (1X EDR)", "Ethernet");
  add("mlx5_2", "2", "4: ACTIVE", "", "");
  EXPECT_EQ(read(), (std::vector<std::string>{"mlx5_0 1 400000 InfiniBand",
                                              "mlx5_2 1 25000 Ethernet", "mlx5_2 2 0 "}));
}

TEST_F(NetworkPorts, NoneWhereThereIsNothing) {
  EXPECT_TRUE(read().empty());
  NetworkPort ports[kMostNetworkPorts];
  EXPECT_EQ(read_network_ports("/no/such/folder", ports), 0u);
}

TEST_F(NetworkPorts, NoMoreThanThereIsRoomFor) {
  for (int i = 0; i < 80; ++i) {
    add("mlx5_" + std::to_string(i), "1", "4: ACTIVE", "100 Gb/sec (4X EDR)", "InfiniBand");
  }
  EXPECT_EQ(read().size(), kMostNetworkPorts);
}

TEST(NetworkRate, WordsOfTheKernel) {
  EXPECT_EQ(read_rate_mbits("400 Gb/sec (4X NDR)"), 400'000u);
  EXPECT_EQ(read_rate_mbits("2.5 Gb/sec (1X SDR)"), 2'500u);
  EXPECT_EQ(read_rate_mbits("800 Gb/sec"), 800'000u);
  for (const char* const wrong :
       {"", "400", "fast Gb/sec", "4 Mb/sec", "99999999999 Gb/sec", "1.25 Gb/sec"}) {
    EXPECT_EQ(read_rate_mbits(wrong), 0u) << wrong;
  }
}

}  // namespace
}  // namespace gpuprof
