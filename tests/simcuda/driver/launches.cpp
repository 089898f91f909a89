// SPDX-License-Identifier: Apache-2.0
// Modules, whose kernels are known by name alone, and launches.
#include <unistd.h>

#include "tests/simcuda/driver/driver_api.h"

namespace gpuprof::simcuda {
namespace {

SIM_API(cuLaunchKernel)
SIM_API(cuLaunchKernel_ptsz)
SIM_API(cuLaunchKernelEx)
SIM_API(cuLaunchKernelEx_ptsz)
SIM_API(cuLaunchCooperativeKernel)
SIM_API(cuLaunchCooperativeKernel_ptsz)
SIM_API(cuGraphLaunch)
SIM_API(cuGraphLaunch_ptsz)
SIM_API(cuLaunchHostFunc)
SIM_API(cuLaunchHostFunc_ptsz)
SIM_API(cuModuleLoad)
SIM_API(cuModuleLoadData)
SIM_API(cuModuleLoadDataEx)
SIM_API(cuModuleUnload)
SIM_API(cuLibraryLoadData)
SIM_API(cuLibraryUnload)
SIM_GETTER(cuModuleGetFunction)
SIM_GETTER(cuLibraryGetKernel)
SIM_GETTER(cuKernelGetFunction)

using RuntimeLaunch = decltype(&cudaLaunchKernel);

CUresult launch(const ApiInfo& api, RuntimeLaunch launch, CUfunction f, dim3 grid, dim3 block,
                unsigned shared, CUstream stream, void** arguments, void** extra = nullptr) {
  const cuLaunchKernel_params params{f,       grid.x, grid.y, grid.z,    block.x, block.y,
                                     block.z, shared, stream, arguments, extra};
  return as_driver(
      api, [&] { return launch(f, grid, block, arguments, shared, stream); }, &params);
}

CUresult launch_ex(const ApiInfo& api, decltype(&cudaLaunchKernelExC) launch,
                   const CUlaunchConfig* config, CUfunction f, void** arguments, void** extra) {
  const cuLaunchKernelEx_params params{config, f, arguments, extra};
  cudaLaunchConfig_t runtime{};
  if (config != nullptr) {
    runtime.gridDim = dim3(config->gridDimX, config->gridDimY, config->gridDimZ);
    runtime.blockDim = dim3(config->blockDimX, config->blockDimY, config->blockDimZ);
    runtime.dynamicSmemBytes = config->sharedMemBytes;
    runtime.stream = config->hStream;
  }
  return as_driver(
      api, [&] { return launch(config == nullptr ? nullptr : &runtime, f, arguments); }, &params);
}

// `readable`: the file that is to be loaded can be.
template <typename Handle>
CUresult load(const ApiInfo& api, Handle* out, bool readable = true) {
  return driver_only(api, [&](ApiCall&) {
    if (out == nullptr) return cudaErrorInvalidValue;
    if (!readable) return cudaErrorFileNotFound;
    *out = reinterpret_cast<Handle>(new char[16]());
    return cudaSuccess;
  });
}

template <typename Handle>
CUresult unload(const ApiInfo& api, Handle handle) {
  return driver_only(api, [&](ApiCall&) {
    delete[] reinterpret_cast<char*>(handle);
    return cudaSuccess;
  });
}

template <typename Handle>
CUresult find_kernel(const ApiInfo& api, Handle* out, const char* name) {
  return driver_only(api, [&](ApiCall&) {
    if (out == nullptr || name == nullptr) return cudaErrorInvalidValue;
    *out = reinterpret_cast<Handle>(KernelRegistry::instance().named(name));
    return cudaSuccess;
  });
}

}  // namespace
}  // namespace gpuprof::simcuda

using namespace gpuprof::simcuda;

#define SIM_LAUNCH(name, runtime)                                                                \
  CUresult name(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,   \
                unsigned bz, unsigned shared, CUstream stream, void** arguments, void** extra) { \
    return launch(k_##name, runtime, f, dim3(gx, gy, gz), dim3(bx, by, bz), shared, stream,      \
                  arguments, extra);                                                             \
  }
#define SIM_LAUNCH_COOPERATIVE(name, runtime)                                                  \
  CUresult name(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, \
                unsigned bz, unsigned shared, CUstream stream, void** arguments) {             \
    return launch(k_##name, runtime, f, dim3(gx, gy, gz), dim3(bx, by, bz), shared, stream,    \
                  arguments);                                                                  \
  }
#define SIM_LAUNCH_EX(name, runtime)                                                          \
  CUresult name(const CUlaunchConfig* config, CUfunction f, void** arguments, void** extra) { \
    return launch_ex(k_##name, runtime, config, f, arguments, extra);                         \
  }
#define SIM_LAUNCH_GRAPH(name, runtime)                             \
  CUresult name(CUgraphExec graph, CUstream stream) {               \
    const cuGraphLaunch_params params{graph, stream};               \
    return as_driver(                                               \
        k_##name, [&] { return runtime(graph, stream); }, &params); \
  }
#define SIM_LAUNCH_HOST(name, runtime)                                           \
  CUresult name(CUstream stream, CUhostFn function, void* data) {                \
    return as_driver(k_##name, [&] { return runtime(stream, function, data); }); \
  }

extern "C" {

SIM_LAUNCH(cuLaunchKernel, cudaLaunchKernel)
SIM_LAUNCH(cuLaunchKernel_ptsz, cudaLaunchKernel_ptsz)
SIM_LAUNCH_COOPERATIVE(cuLaunchCooperativeKernel, cudaLaunchCooperativeKernel)
SIM_LAUNCH_COOPERATIVE(cuLaunchCooperativeKernel_ptsz, cudaLaunchCooperativeKernel_ptsz)
SIM_LAUNCH_EX(cuLaunchKernelEx, cudaLaunchKernelExC)
SIM_LAUNCH_EX(cuLaunchKernelEx_ptsz, cudaLaunchKernelExC_ptsz)
SIM_LAUNCH_GRAPH(cuGraphLaunch, cudaGraphLaunch)
SIM_LAUNCH_GRAPH(cuGraphLaunch_ptsz, cudaGraphLaunch_ptsz)
SIM_LAUNCH_HOST(cuLaunchHostFunc, cudaLaunchHostFunc)
SIM_LAUNCH_HOST(cuLaunchHostFunc_ptsz, cudaLaunchHostFunc_ptsz)

CUresult cuModuleLoad(CUmodule* out, const char* file) {
  return load(k_cuModuleLoad, out, file != nullptr && access(file, R_OK) == 0);
}
CUresult cuModuleLoadData(CUmodule* out, const void*) { return load(k_cuModuleLoadData, out); }
CUresult cuModuleLoadDataEx(CUmodule* out, const void*, unsigned, CUjit_option*, void**) {
  return load(k_cuModuleLoadDataEx, out);
}
CUresult cuModuleUnload(CUmodule module) { return unload(k_cuModuleUnload, module); }
CUresult cuModuleGetFunction(CUfunction* out, CUmodule, const char* name) {
  return find_kernel(k_cuModuleGetFunction, out, name);
}
CUresult cuLibraryLoadData(CUlibrary* out, const void*, CUjit_option*, void**, unsigned,
                           CUlibraryOption*, void**, unsigned) {
  return load(k_cuLibraryLoadData, out);
}
CUresult cuLibraryUnload(CUlibrary library) { return unload(k_cuLibraryUnload, library); }
CUresult cuLibraryGetKernel(CUkernel* out, CUlibrary, const char* name) {
  return find_kernel(k_cuLibraryGetKernel, out, name);
}
CUresult cuKernelGetFunction(CUfunction* out, CUkernel kernel) {
  return driver_only(k_cuKernelGetFunction, [&](ApiCall&) {
    if (out == nullptr) return cudaErrorInvalidValue;
    *out = reinterpret_cast<CUfunction>(kernel);
    return cudaSuccess;
  });
}

}  // extern "C"
