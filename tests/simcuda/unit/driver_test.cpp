// SPDX-License-Identifier: Apache-2.0
// What compilers of kernels at run time (Triton) ask of the driver besides launches.
#include <cuda.h>
#include <dlfcn.h>

#include <thread>

#include "tests/simcuda/unit/support.h"

namespace gpuprof::simcuda::testing {
namespace {

template <typename Function>
Function driver(const char* name) {
  void* found = nullptr;
  EXPECT_EQ(cudaGetDriverEntryPointByVersion(name, &found, 13000, cudaEnableDefault, nullptr),
            cudaSuccess);
  return reinterpret_cast<Function>(found);
}

TEST(Driver, ModulesAreLoadedFromFilesThatAreThere) {
  const auto load = driver<decltype(&cuModuleLoad)>("cuModuleLoad");
  const auto get = driver<decltype(&cuModuleGetFunction)>("cuModuleGetFunction");
  const auto launch = driver<decltype(&cuLaunchKernel)>("cuLaunchKernel");
  CUmodule module = nullptr;
  EXPECT_EQ(load(&module, "/nowhere.cubin"), CUDA_ERROR_FILE_NOT_FOUND);
  EXPECT_EQ(load(nullptr, "/proc/self/exe"), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(load(&module, "/proc/self/exe"), CUDA_SUCCESS);
  CUfunction function = nullptr;
  ASSERT_EQ(get(&function, module, "from_a_file"), CUDA_SUCCESS);
  int threads = 0;
  const auto ask = driver<decltype(&cuFuncGetAttribute)>("cuFuncGetAttribute");
  EXPECT_EQ(ask(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function), CUDA_SUCCESS);
  EXPECT_EQ(threads, 1024);
  ASSERT_EQ(launch(function, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(kernel("from_a_file")["block"], Json({32, 1, 1}));
  EXPECT_EQ(driver<decltype(&cuModuleUnload)>("cuModuleUnload")(module), CUDA_SUCCESS);
}

TEST(Driver, LimitsOfAContextAreKept) {
  const auto get = driver<decltype(&cuCtxGetLimit)>("cuCtxGetLimit");
  const auto set = driver<decltype(&cuCtxSetLimit)>("cuCtxSetLimit");
  size_t printf_bytes = 0;
  ASSERT_EQ(get(&printf_bytes, CU_LIMIT_PRINTF_FIFO_SIZE), CUDA_SUCCESS);
  ASSERT_EQ(set(CU_LIMIT_PRINTF_FIFO_SIZE, 2 * printf_bytes), CUDA_SUCCESS);
  size_t now = 0;
  ASSERT_EQ(get(&now, CU_LIMIT_PRINTF_FIFO_SIZE), CUDA_SUCCESS);
  EXPECT_GT(printf_bytes, 0u);
  EXPECT_EQ(now, 2 * printf_bytes);
  EXPECT_EQ(set(CU_LIMIT_MAX, 1), CUDA_ERROR_UNSUPPORTED_LIMIT);
}

TEST(Driver, AThreadHasNoContextBeforeTheRuntimesFirstCall) {
  const auto current = driver<decltype(&cuCtxGetCurrent)>("cuCtxGetCurrent");
  const auto set = driver<decltype(&cuCtxSetCurrent)>("cuCtxSetCurrent");
  const auto create = driver<decltype(&cuEventCreate)>("cuEventCreate");
  const auto retain = driver<decltype(&cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain");
  std::thread([=] {
    CUcontext context = nullptr, second = nullptr;
    CUevent event = nullptr;
    int device = -1;
    EXPECT_EQ(current(&context), CUDA_SUCCESS);
    EXPECT_EQ(context, nullptr);
    EXPECT_EQ(create(&event, 0), CUDA_ERROR_INVALID_CONTEXT);
    // What is set and taken away leaves the runtime's choice as it was.
    ASSERT_EQ(retain(&second, 1), CUDA_SUCCESS);
    EXPECT_EQ(set(second), CUDA_SUCCESS);
    EXPECT_EQ(set(nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
    EXPECT_EQ(current(&context), CUDA_SUCCESS);
    EXPECT_NE(context, nullptr);
    EXPECT_NE(context, second);
    EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
    EXPECT_EQ(device, 0);
    EXPECT_EQ(create(&event, 0), CUDA_SUCCESS);
  }).join();
}

TEST(Driver, APointerOfTheHostIsTheDevices) {
  const auto ask = driver<decltype(&cuPointerGetAttribute)>("cuPointerGetAttribute");
  void* block = nullptr;
  ASSERT_EQ(cudaMalloc(&block, 1024), cudaSuccess);
  CUdeviceptr device = 0;
  const auto inside = reinterpret_cast<CUdeviceptr>(block) + 16;
  ASSERT_EQ(ask(&device, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, inside), CUDA_SUCCESS);
  EXPECT_EQ(device, inside);
  EXPECT_EQ(cudaFree(block), cudaSuccess);
}

TEST(Nvml, AnswersWhileItIsInitialized) {
  void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto find = [library]<typename F>(F* type, const char* name) {
    return reinterpret_cast<decltype(type)>(dlsym(library, name));
  };
  using Plain = int();
  using ByBusId = int(const char*, void**);
  using Power = int(void*, unsigned*);
  const auto by_bus_id = find(static_cast<ByBusId*>(nullptr), "nvmlDeviceGetHandleByPciBusId_v2");
  const auto power = find(static_cast<Power*>(nullptr), "nvmlDeviceGetPowerUsage");
  const auto shutdown = find(static_cast<Plain*>(nullptr), "nvmlShutdown");
  constexpr int kSuccess = 0, kUninitialized = 1;
  void* device = nullptr;
  unsigned watts = 0;
  EXPECT_EQ(by_bus_id("0000:10:00.0", &device), kUninitialized);
  ASSERT_EQ(find(static_cast<Plain*>(nullptr), "nvmlInit_v2")(), kSuccess);
  ASSERT_EQ(by_bus_id("0000:10:00.0", &device), kSuccess);
  EXPECT_EQ(power(device, &watts), kSuccess);
  EXPECT_EQ(shutdown(), kSuccess);
  EXPECT_EQ(power(device, &watts), kUninitialized);
  EXPECT_EQ(shutdown(), kUninitialized);
}

}  // namespace
}  // namespace gpuprof::simcuda::testing
