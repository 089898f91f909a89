// SPDX-License-Identifier: Apache-2.0
// A CUDA runtime to link into a program: its functions are the program's own, and all that it does
// it does through the driver, reached as NVIDIA's libcudart_static reaches it: dlopen of
// libcuda.so.1, dlsym of cuGetProcAddress_v2, everything else by that. Has what the tests use.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <cupti.h>
#include <dlfcn.h>

extern "C" CUresult cuProfilerStart();
extern "C" CUresult cuProfilerStop();

#include <map>
#include <string>

#undef cuGetProcAddress

namespace {

using Ask = CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);

void* driver_library() {
  static void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  return library;
}

// Looked up once, before the driver is started.
Ask asker() {
  static const Ask ask = reinterpret_cast<Ask>(::dlsym(driver_library(), "cuGetProcAddress_v2"));
  return ask;
}

template <typename Function>
Function driver(const char* name, int version) {
  const Ask ask = asker();
  void* found = nullptr;
  CUdriverProcAddressQueryResult status{};
  if (ask == nullptr || ask(name, &found, version, 0, &status) != CUDA_SUCCESS) return nullptr;
  return reinterpret_cast<Function>(found);
}

// What CUPTI is to see of the runtime's own call while the driver's runs.
class RuntimeCall {
 public:
  RuntimeCall(unsigned id, const char* name, const void* params = nullptr) {
    static const auto enter = reinterpret_cast<void* (*)(unsigned, const char*, const void*)>(
        ::dlsym(driver_library(), "simcuda_static_enter"));
    if (enter != nullptr) call_ = enter(id, name, params);
  }
  cudaError_t leave(CUresult result) {
    static const auto leave =
        reinterpret_cast<void (*)(void*, int)>(::dlsym(driver_library(), "simcuda_static_leave"));
    if (leave != nullptr) leave(call_, static_cast<int>(result));
    return static_cast<cudaError_t>(result);
  }

 private:
  void* call_ = nullptr;
};

// Host stub to kernel, as the compiler's registration told it.
std::map<const void*, std::string>& kernels() {
  static auto& all = *new std::map<const void*, std::string>();
  return all;
}

CUfunction function_of(const void* stub) {
  static const auto load = driver<decltype(&cuModuleLoadData)>("cuModuleLoadData", 2000);
  static const auto get = driver<decltype(&cuModuleGetFunction)>("cuModuleGetFunction", 2000);
  static const auto start = driver<decltype(&cuInit)>("cuInit", 2000);
  static const CUresult started = start(0);
  static CUmodule module = nullptr;
  if (started != CUDA_SUCCESS) return nullptr;
  static auto& functions = *new std::map<const void*, CUfunction>();
  if (module == nullptr) load(&module, "");
  CUfunction& function = functions[stub];
  if (function == nullptr) get(&function, module, kernels()[stub].c_str());
  return function;
}

CUdeviceptr address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

CUdeviceptr* addresses(const void* const* pointers) {
  return const_cast<CUdeviceptr*>(reinterpret_cast<const CUdeviceptr*>(pointers));
}

}  // namespace

// CALL(runtime function, its callback's version, driver symbol, driver name, CUDA version,
// arguments)
#define CALL(function, suffix, symbol, name, version, ...)                  \
  static const auto real = driver<decltype(&symbol)>(name, version);        \
  RuntimeCall call(CUPTI_RUNTIME_TRACE_CBID_##function##suffix, #function); \
  return call.leave(real(__VA_ARGS__))

extern "C" {

void** __cudaRegisterFatBinary(void* binary) { return new void*(binary); }
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaRegisterFunction(void**, const char* stub, char*, const char* name, int, uint3*, uint3*,
                            dim3*, dim3*, int*) {
  kernels()[stub] = name;
}

cudaError_t cudaLaunchKernel(const void* stub, dim3 grid, dim3 block, void** arguments,
                             size_t shared, cudaStream_t stream) {
  const CUfunction kernel = function_of(stub);
  static const auto real = driver<decltype(&cuLaunchKernel)>("cuLaunchKernel", 4000);
  const cudaLaunchKernel_v7000_params params{stub, grid, block, arguments, shared, stream};
  RuntimeCall call(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, "cudaLaunchKernel", &params);
  return call.leave(real(kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                         static_cast<unsigned>(shared), stream, arguments, nullptr));
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* stub,
                                void** arguments) {
  const CUfunction kernel = function_of(stub);
  CUlaunchConfig launch{};
  launch.gridDimX = config->gridDim.x, launch.gridDimY = config->gridDim.y;
  launch.gridDimZ = config->gridDim.z;
  launch.blockDimX = config->blockDim.x, launch.blockDimY = config->blockDim.y;
  launch.blockDimZ = config->blockDim.z;
  launch.sharedMemBytes = static_cast<unsigned>(config->dynamicSmemBytes);
  launch.hStream = config->stream;
  CALL(cudaLaunchKernelExC, _v11060, cuLaunchKernelEx, "cuLaunchKernelEx", 11060, &launch, kernel,
       arguments, nullptr);
}
cudaError_t cudaLaunchCooperativeKernel(const void* stub, dim3 grid, dim3 block, void** arguments,
                                        size_t shared, cudaStream_t stream) {
  const CUfunction kernel = function_of(stub);
  CALL(cudaLaunchCooperativeKernel, _v9000, cuLaunchCooperativeKernel, "cuLaunchCooperativeKernel",
       9000, kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z,
       static_cast<unsigned>(shared), stream, arguments);
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  CALL(cudaLaunchHostFunc, _v10000, cuLaunchHostFunc, "cuLaunchHostFunc", 10000, stream, function,
       data);
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  CALL(cudaGraphLaunch, _v10000, cuGraphLaunch, "cuGraphLaunch", 10000, graph, stream);
}

cudaError_t cudaMalloc(void** out, size_t bytes) {
  CALL(cudaMalloc, _v3020, cuMemAlloc_v2, "cuMemAlloc", 3020, reinterpret_cast<CUdeviceptr*>(out),
       bytes);
}
cudaError_t cudaMallocHost(void** out, size_t bytes) {
  CALL(cudaMallocHost, _v3020, cuMemHostAlloc, "cuMemHostAlloc", 2020, out, bytes, 0);
}
cudaError_t cudaMallocManaged(void** out, size_t bytes, unsigned flags) {
  CALL(cudaMallocManaged, _v6000, cuMemAllocManaged, "cuMemAllocManaged", 6000,
       reinterpret_cast<CUdeviceptr*>(out), bytes, flags);
}
cudaError_t cudaMallocAsync(void** out, size_t bytes, cudaStream_t stream) {
  CALL(cudaMallocAsync, _v11020, cuMemAllocAsync, "cuMemAllocAsync", 11020,
       reinterpret_cast<CUdeviceptr*>(out), bytes, stream);
}
cudaError_t cudaFree(void* pointer) {
  CALL(cudaFree, _v3020, cuMemFree_v2, "cuMemFree", 3020, address(pointer));
}
cudaError_t cudaFreeHost(void* pointer) {
  CALL(cudaFreeHost, _v3020, cuMemFreeHost, "cuMemFreeHost", 2000, pointer);
}
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  CALL(cudaFreeAsync, _v11020, cuMemFreeAsync, "cuMemFreeAsync", 11020, address(pointer), stream);
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  CALL(cudaMemcpy, _v3020, cuMemcpy, "cuMemcpy", 4000, address(to), address(from), bytes);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  CALL(cudaMemcpyAsync, _v3020, cuMemcpyAsync, "cuMemcpyAsync", 4000, address(to), address(from),
       bytes, stream);
}
cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  CALL(cudaMemset, _v3020, cuMemsetD8_v2, "cuMemsetD8", 3020, address(to),
       static_cast<unsigned char>(value), bytes);
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  CALL(cudaMemsetAsync, _v3020, cuMemsetD8Async, "cuMemsetD8Async", 3020, address(to),
       static_cast<unsigned char>(value), bytes, stream);
}

cudaError_t cudaMemcpyBatchAsync(void* const* to, const void* const* from, const size_t* sizes,
                                 size_t count, cudaMemcpyAttributes* attributes, size_t* indices,
                                 size_t attribute_count, cudaStream_t stream) {
  CALL(cudaMemcpyBatchAsync, _v13000, cuMemcpyBatchAsync, "cuMemcpyBatchAsync", 13000,
       addresses(to), addresses(from), const_cast<size_t*>(sizes), count,
       reinterpret_cast<CUmemcpyAttributes*>(attributes), indices, attribute_count, stream);
}
cudaError_t cudaMemcpy3DBatchAsync(size_t count, cudaMemcpy3DBatchOp* copies,
                                   unsigned long long flags, cudaStream_t stream) {
  CALL(cudaMemcpy3DBatchAsync, _v13000, cuMemcpy3DBatchAsync, "cuMemcpy3DBatchAsync", 13000, count,
       reinterpret_cast<CUDA_MEMCPY3D_BATCH_OP*>(copies), flags, stream);
}
cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes,
                                cudaStream_t stream) {
  CALL(cudaMemcpyPeerAsync, _v4000, cuMemcpyPeerAsync, "cuMemcpyPeerAsync", 4000, address(to),
       nullptr, address(from), nullptr, bytes, stream);
}
cudaError_t cudaMemcpy3DPeerAsync(const cudaMemcpy3DPeerParms* p, cudaStream_t stream) {
  CUDA_MEMCPY3D_PEER copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = address(p->srcPtr.ptr), copy.dstDevice = address(p->dstPtr.ptr);
  copy.srcPitch = p->srcPtr.pitch, copy.dstPitch = p->dstPtr.pitch;
  copy.WidthInBytes = p->extent.width, copy.Height = p->extent.height;
  copy.Depth = p->extent.depth;
  CALL(cudaMemcpy3DPeerAsync, _v4000, cuMemcpy3DPeerAsync, "cuMemcpy3DPeerAsync", 4000, &copy,
       stream);
}
cudaError_t cudaMemAdvise(const void* pointer, size_t bytes, cudaMemoryAdvise advice,
                          cudaMemLocation) {
  CALL(cudaMemAdvise, _v12020, cuMemAdvise, "cuMemAdvise", 12020, address(pointer), bytes,
       static_cast<CUmem_advise>(advice), CUmemLocation{});
}
cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t bytes, cudaMemLocation, unsigned flags,
                                 cudaStream_t stream) {
  CALL(cudaMemPrefetchAsync, _v12020, cuMemPrefetchAsync, "cuMemPrefetchAsync", 12020,
       address(pointer), bytes, CUmemLocation{}, flags, stream);
}

cudaError_t cudaSetDevice(int device) {
  static const auto set = driver<decltype(&cuCtxSetCurrent)>("cuCtxSetCurrent", 4000);
  static const auto retain =
      driver<decltype(&cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain", 7000);
  CUcontext context = nullptr;
  retain(&context, device);
  return static_cast<cudaError_t>(set(context));
}
cudaError_t cudaProfilerStart() {
  CALL(cudaProfilerStart, _v4000, cuProfilerStart, "cuProfilerStart", 4000);
}
cudaError_t cudaProfilerStop() {
  CALL(cudaProfilerStop, _v4000, cuProfilerStop, "cuProfilerStop", 4000);
}
cudaError_t cudaDeviceSynchronize() {
  CALL(cudaDeviceSynchronize, _v3020, cuCtxSynchronize, "cuCtxSynchronize", 2000);
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* out, unsigned flags) {
  CALL(cudaStreamCreateWithFlags, _v5000, cuStreamCreate, "cuStreamCreate", 2000, out, flags);
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* out, unsigned flags, int priority) {
  CALL(cudaStreamCreateWithPriority, _v5050, cuStreamCreateWithPriority,
       "cuStreamCreateWithPriority", 5050, out, flags, priority);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  CALL(cudaStreamDestroy, _v5050, cuStreamDestroy_v2, "cuStreamDestroy", 4000, stream);
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  CALL(cudaStreamSynchronize, _v3020, cuStreamSynchronize, "cuStreamSynchronize", 2000, stream);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  CALL(cudaStreamWaitEvent, _v3020, cuStreamWaitEvent, "cuStreamWaitEvent", 3020, stream, event,
       flags);
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* out, unsigned flags) {
  CALL(cudaEventCreateWithFlags, _v3020, cuEventCreate, "cuEventCreate", 2000, out, flags);
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  CALL(cudaEventRecord, _v3020, cuEventRecord, "cuEventRecord", 2000, event, stream);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  CALL(cudaEventSynchronize, _v3020, cuEventSynchronize, "cuEventSynchronize", 2000, event);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  CALL(cudaEventDestroy, _v3020, cuEventDestroy_v2, "cuEventDestroy", 4000, event);
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  CALL(cudaStreamBeginCapture, _v10000, cuStreamBeginCapture_v2, "cuStreamBeginCapture", 10010,
       stream, static_cast<CUstreamCaptureMode>(mode));
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  CALL(cudaStreamEndCapture, _v10000, cuStreamEndCapture, "cuStreamEndCapture", 10000, stream,
       graph);
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* out, cudaGraph_t graph,
                                          unsigned long long flags) {
  CALL(cudaGraphInstantiateWithFlags, _v11040, cuGraphInstantiateWithFlags,
       "cuGraphInstantiateWithFlags", 11040, out, graph, flags);
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* out, cudaGraph_t graph,
                                 unsigned long long flags) {
  CALL(cudaGraphInstantiate, _v12000, cuGraphInstantiateWithFlags, "cuGraphInstantiate", 12000, out,
       graph, flags);
}
cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t* out, cudaGraph_t graph,
                                           cudaGraphInstantiateParams* params) {
  CALL(cudaGraphInstantiateWithParams, _v12000, cuGraphInstantiateWithParams,
       "cuGraphInstantiateWithParams", 12000, out, graph,
       reinterpret_cast<CUDA_GRAPH_INSTANTIATE_PARAMS*>(params));
}
cudaError_t cudaGraphUpload(cudaGraphExec_t graph, cudaStream_t stream) {
  CALL(cudaGraphUpload, _v10000, cuGraphUpload, "cuGraphUpload", 11010, graph, stream);
}
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo* info) {
  CALL(cudaGraphExecUpdate, _v10020, cuGraphExecUpdate, "cuGraphExecUpdate", 12000, exec, graph,
       reinterpret_cast<CUgraphExecUpdateResultInfo*>(info));
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  CALL(cudaGraphExecDestroy, _v10000, cuGraphExecDestroy, "cuGraphExecDestroy", 10000, graph);
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  CALL(cudaGraphDestroy, _v10000, cuGraphDestroy, "cuGraphDestroy", 10000, graph);
}

}  // extern "C"
