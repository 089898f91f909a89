// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/network_ports.h"

#include <cstdio>
#include <cstring>

#include "collector/base/os.h"
#include "formats/core/text.h"

namespace gpuprof {
namespace {

struct Search {
  const char* directory;  // of adapters
  const char* adapter;
  NetworkPort* out;
  size_t found;
};

bool read_of_port(const Search& search, const char* port, const char* file, char* out,
                  size_t size) {
  char path[512];
  const int length = std::snprintf(path, sizeof path, "%s/%s/ports/%s/%s", search.directory,
                                   search.adapter, port, file);
  return length > 0 && static_cast<size_t>(length) < sizeof path &&
         read_small_file(path, out, size);
}

bool add_port(const char* name, void* context) {
  Search& search = *static_cast<Search*>(context);
  uint64_t number = 0;
  if (!parse_whole(name, number)) return false;
  char state[32] = "", rate[64] = "";
  // "4: ACTIVE"; the number is what the kernel promises.
  if (!read_of_port(search, name, "state", state, sizeof state) || state[0] != '4') return false;
  NetworkPort& port = search.out[search.found++];
  port = NetworkPort{};
  std::snprintf(port.adapter, sizeof port.adapter, "%s", search.adapter);
  port.number = static_cast<uint32_t>(number);
  if (read_of_port(search, name, "rate", rate, sizeof rate)) {
    port.mbits_per_s = read_rate_mbits(rate);
  }
  (void)read_of_port(search, name, "link_layer", port.link_layer, sizeof port.link_layer);
  return search.found == kMostNetworkPorts;
}

bool add_adapter(const char* name, void* context) {
  Search& search = *static_cast<Search*>(context);
  if (name[0] == '.') return false;
  char path[512];
  const int length = std::snprintf(path, sizeof path, "%s/%s/ports", search.directory, name);
  if (length < 0 || static_cast<size_t>(length) >= sizeof path) return false;
  search.adapter = name;
  return any_entry(path, add_port, context);
}

}  // namespace

uint32_t read_rate_mbits(const char* text) {
  std::string_view rest(text, std::strlen(text));
  uint64_t whole = 0;
  const std::string_view number = take_until(rest, ' ');
  if (!starts_with(rest, "Gb/sec")) return 0;
  std::string_view fraction = number;
  if (!parse_whole(take_until(fraction, '.'), whole) || whole > 1'000'000) return 0;
  uint64_t tenths = 0;  // "2.5", "12.5"; more digits are not in use
  if (!fraction.empty() && (!parse_whole(fraction, tenths) || tenths > 9)) return 0;
  return static_cast<uint32_t>(whole * 1000 + tenths * 100);
}

size_t read_network_ports(const char* directory, NetworkPort* out) {
  Search search{directory, nullptr, out, 0};
  (void)any_entry(directory, add_adapter, &search);
  return search.found;
}

}  // namespace gpuprof
