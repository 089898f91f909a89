// SPDX-License-Identifier: Apache-2.0
#include "tests/simcuda/core/version.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

namespace gpuprof::simcuda {
namespace {

struct Release {
  std::string_view name;
  int cuda;
  uint32_t cupti;
};
// The CUPTI numbers are those of cupti_version.h.
constexpr Release kReleases[] = {
    {"12.0", 12000, 19},     {"12.2", 12020, 20},     {"12.3", 12030, 21},     {"12.4", 12040, 22},
    {"12.5", 12050, 23},     {"12.6", 12060, 24},     {"12.8", 12080, 26},     {"12.9", 12090, 27},
    {"13.0", 13000, 130001}, {"13.2", 13020, 130202}, {"13.3", 13030, 130301},
};

const Release& find(std::string_view name) {
  for (const Release& release : kReleases) {
    if (release.name == name) return release;
  }
  fmt::print(stderr, "simcuda: SIMCUDA_VERSION={} is not simulated; 13.0 is\n", name);
  return find("13.0");
}

const Release& release() {
  static const Release& chosen = []() -> const Release& {
    if (const char* text = std::getenv("SIMCUDA_VERSION")) return find(text);
    Dl_info self{};
    ::dladdr(reinterpret_cast<void*>(&cuda_version), &self);
    const std::string_view file(self.dli_fname == nullptr ? "" : self.dli_fname);
    // The runtime's functions lie in libcuda, whose name is the same for every CUDA.
    const bool runtime_12 = ::dlopen("libcudart.so.12", RTLD_NOW | RTLD_NOLOAD) != nullptr;
    return find(runtime_12 || file.find(".so.12") != file.npos ? "12.6" : "13.0");
  }();
  return chosen;
}

}  // namespace

int cuda_version() { return release().cuda; }
uint32_t cupti_version() { return release().cupti; }

}  // namespace gpuprof::simcuda
