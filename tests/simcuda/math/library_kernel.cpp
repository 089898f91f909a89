// SPDX-License-Identifier: Apache-2.0
#include "tests/simcuda/math/library_kernel.h"

#include <mutex>
#include <set>
#include <string>

// As the compiler's registration calls them; the header is nvcc's alone.
extern "C" void __cudaRegisterFunction(void**, const char* stub, char*, const char* name, int,
                                       uint3*, uint3*, dim3*, dim3*, int*);

namespace gpuprof::simcuda {
namespace {

struct Opaque {
  char bytes[64] = {};
};

}  // namespace

bool launch_library_kernel(const char* name, cudaStream_t stream) {
  static auto& mutex = *new std::mutex();
  static auto& registered = *new std::set<const char*>();
  const std::lock_guard<std::mutex> lock(mutex);
  if (registered.insert(name).second) {
    __cudaRegisterFunction(nullptr, name, nullptr, name, -1, nullptr, nullptr, nullptr, nullptr,
                           nullptr);
  }
  return cudaLaunchKernel(name, dim3(8, 4), dim3(128), nullptr, 0, stream) == cudaSuccess;
}

void make_opaque(void** out) { *out = new Opaque(); }
void destroy_opaque(void* object) { delete static_cast<Opaque*>(object); }

}  // namespace gpuprof::simcuda
