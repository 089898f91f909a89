// SPDX-License-Identifier: Apache-2.0
#include "tests/simcuda/core/settings.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace gpuprof::simcuda {
namespace {

void complain(const char* name, std::string_view value, const char* allowed) {
  fmt::print(stderr, "simcuda: {}={} is not {}; the default is used\n", name, value, allowed);
}

template <typename T>
bool parse_number(std::string_view text, T* out) {
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, *out);
  return result.ec == std::errc{} && result.ptr == end;
}

template <typename T>
void read_number(const char* name, T* out) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return;
  T value{};
  if (parse_number(std::string_view(text), &value) && value > T{0}) {
    *out = value;
  } else {
    complain(name, text, "a number above 0");
  }
}

bool read_flag(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != '\0' && std::string_view(text) != "0";
}

int default_error(std::string_view api) {
  const bool allocates = api.find("Alloc") != api.npos || api.find("Malloc") != api.npos;
  return allocates ? cudaErrorMemoryAllocation : cudaErrorLaunchFailure;
}

// "NAME:CALL[:ERROR]", comma separated.
void read_failures(Settings* out) {
  const char* text = std::getenv("SIMCUDA_FAIL");
  if (text == nullptr) return;
  std::string_view rest(text);
  while (!rest.empty()) {
    const std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
    const size_t first = item.find(':');
    const std::string_view api = item.substr(0, first);
    std::string_view numbers = first == item.npos ? "" : item.substr(first + 1);
    const std::string_view call = numbers.substr(0, numbers.find(':'));
    numbers.remove_prefix(std::min(numbers.size(), call.size() + 1));
    InjectedFailure failure;
    failure.error = default_error(api);
    const bool good = !api.empty() && parse_number(call, &failure.call) && failure.call > 0 &&
                      (numbers.empty() || parse_number(numbers, &failure.error));
    if (good) {
      out->failures[std::string(api)] = failure;
    } else {
      complain("SIMCUDA_FAIL", item, "NAME:CALL or NAME:CALL:ERROR");
    }
  }
}

Settings read_settings() {
  Settings s;
  read_number("SIMCUDA_DEVICES", &s.devices);
  uint64_t memory_mb = s.memory_bytes >> 20;
  read_number("SIMCUDA_MEMORY_MB", &memory_mb);
  s.memory_bytes = memory_mb << 20;
  read_number("SIMCUDA_KERNEL_NS", &s.kernel_ns);
  read_number("SIMCUDA_LAUNCH_LATENCY_NS", &s.launch_latency_ns);
  read_number("SIMCUDA_QUEUE", &s.queue);
  read_number("SIMCUDA_CONNECTIONS", &s.connections);
  read_number("SIMCUDA_COPY_LIMIT", &s.copy_limit_bytes);
  read_number("SIMCUDA_SEED", &s.seed);
  read_number("SIMCUDA_FIRST_CORRELATION", &s.first_correlation);
  read_number("SIMCUDA_HELD_GRAPH_LAUNCH", &s.held_graph_launch);
  read_number("SIMCUDA_HELD_MS", &s.held_ms);
  read_number("SIMCUDA_INJECTION_MS", &s.injection_ms);
  read_number("SIMCUDA_PAGEABLE_GBS", &s.pageable_gb_s);
  read_number("SIMCUDA_PINNED_GBS", &s.pinned_gb_s);
  read_number("SIMCUDA_DEVICE_GBS", &s.device_gb_s);
  read_number("SIMCUDA_PEER_GBS", &s.peer_gb_s);
  read_number("SIMCUDA_MEMSET_GBS", &s.memset_gb_s);
  s.no_driver = read_flag("SIMCUDA_NODRIVER");
  s.reversed_node_ids = read_flag("SIMCUDA_REVERSED_NODE_IDS");
  if (const char* directory = std::getenv("SIMCUDA_TRUTH")) s.truth_directory = directory;
  s.truth_all = read_flag("SIMCUDA_TRUTH_ALL");
  s.truth_sync = read_flag("SIMCUDA_TRUTH_SYNC");
  read_failures(&s);
  return s;
}

}  // namespace

const Settings& settings() {
  static const Settings& instance = *new Settings(read_settings());
  return instance;
}

}  // namespace gpuprof::simcuda
