// SPDX-License-Identifier: Apache-2.0
// The same work with the CUDA driver for every way of reaching it. Before it a file defines
// CALL(symbol, name, version): the exported symbol, the name and the CUDA version by which
// cuGetProcAddress is asked for it.
#pragma once

#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

// The header turns these into their newest forms, and has no declaration of the others.
#undef cuGraphExecUpdate
#undef cuGraphInstantiate
#undef cuMemAdvise
#undef cuMemcpy3DBatchAsync
#undef cuMemcpyBatchAsync
CUresult cuGraphInstantiate_v2(CUgraphExec*, CUgraph, CUgraphNode*, char*, size_t);
CUresult cuMemcpyBatchAsync(CUdeviceptr*, CUdeviceptr*, size_t*, size_t, CUmemcpyAttributes*,
                            size_t*, size_t, size_t*, CUstream);
CUresult cuProfilerStart(void);
CUresult cuProfilerStop(void);

static int g_ways_ran = 0;
static void CUDA_CB ways_host_function(void* data) { *(int*)data += 1; }

static void ways_check(int error, const char* what) {
  if (error == 0) return;
  printf("%s: error %d\n", what, error);
  exit(90);
}
#define DO(symbol, name, version, ...) \
  ways_check((int)CALL(symbol, name, version)(__VA_ARGS__), #symbol)

static void ways_launches(CUfunction kernel, CUstream stream) {
  void* pointer = NULL;
  void* arguments[1] = {&pointer};
  CUlaunchConfig config = {0};
  config.gridDimX = config.gridDimY = config.gridDimZ = 2;
  config.blockDimX = 16, config.blockDimY = config.blockDimZ = 1;
  config.hStream = stream;
  for (int i = 0; i < 20; ++i) {
    DO(cuLaunchKernel, "cuLaunchKernel", 4000, kernel, 4, 2, 1, 32, 2, 1, 128, stream, arguments,
       NULL);
  }
  DO(cuLaunchKernelEx, "cuLaunchKernelEx", 11060, &config, kernel, arguments, NULL);
  DO(cuLaunchCooperativeKernel, "cuLaunchCooperativeKernel", 9000, kernel, 4, 1, 1, 32, 1, 1, 0,
     stream, arguments);
  DO(cuLaunchHostFunc, "cuLaunchHostFunc", 10000, stream, ways_host_function, &g_ways_ran);
}

static void ways_memory(CUstream stream) {
  CUdeviceptr device = 0, other = 0, managed = 0, pooled = 0;
  void* host = NULL;
  CUDA_MEMCPY2D box = {0};
  DO(cuMemAlloc_v2, "cuMemAlloc", 3020, &device, 1 << 16);
  DO(cuMemAlloc_v2, "cuMemAlloc", 3020, &other, 1 << 16);
  DO(cuMemAllocHost_v2, "cuMemAllocHost", 3020, &host, 1 << 16);
  DO(cuMemAllocManaged, "cuMemAllocManaged", 6000, &managed, 4096, CU_MEM_ATTACH_GLOBAL);
  DO(cuMemAllocAsync, "cuMemAllocAsync", 11020, &pooled, 8192, stream);
  DO(cuMemcpyHtoD_v2, "cuMemcpyHtoD", 3020, device, host, 1 << 16);
  DO(cuMemcpy, "cuMemcpy", 4000, other, device, 1 << 11);
  for (int i = 0; i < 5; ++i) {
    DO(cuMemcpyDtoDAsync_v2, "cuMemcpyDtoDAsync", 3020, other, device, 1 << 15, stream);
    DO(cuMemcpyDtoHAsync_v2, "cuMemcpyDtoHAsync", 3020, host, device, 1 << 14, stream);
    DO(cuMemcpyHtoDAsync_v2, "cuMemcpyHtoDAsync", 3020, device, host, 1 << 13, stream);
    DO(cuMemsetD8Async, "cuMemsetD8Async", 3020, device, 1, 1 << 12, stream);
    DO(cuMemsetD32Async, "cuMemsetD32Async", 3020, device, 1, 1 << 10, stream);
  }
  box.dstMemoryType = box.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  box.dstDevice = other, box.srcDevice = device;
  box.dstPitch = box.srcPitch = 256, box.WidthInBytes = 128, box.Height = 16;
  DO(cuMemcpy2DAsync_v2, "cuMemcpy2DAsync", 3020, &box, stream);
  DO(cuMemcpyDtoH_v2, "cuMemcpyDtoH", 3020, host, device, 1 << 9);
  DO(cuMemsetD16_v2, "cuMemsetD16", 3020, other, 2, 1 << 9);
  DO(cuStreamSynchronize, "cuStreamSynchronize", 2000, stream);
  DO(cuMemFreeAsync, "cuMemFreeAsync", 11020, pooled, stream);
  DO(cuMemFree_v2, "cuMemFree", 3020, managed);
  DO(cuMemFreeHost, "cuMemFreeHost", 2000, host);
  DO(cuMemFree_v2, "cuMemFree", 3020, other);
  DO(cuMemFree_v2, "cuMemFree", 3020, device);
}

// A batch of three copies, as CUDA 12.8 and as 13.0 know it, and copies to another device.
static void ways_batches(CUcontext context, CUstream stream) {
  enum { kBytes = 1 << 12 };
  CUdeviceptr device = 0, there = 0;
  void* host = NULL;
  CUdevice second = 0;
  CUcontext other = NULL;
  DO(cuMemAlloc_v2, "cuMemAlloc", 3020, &device, 2 * kBytes);
  DO(cuMemAllocHost_v2, "cuMemAllocHost", 3020, &host, 3 * kBytes);
  const CUdeviceptr base = (CUdeviceptr)host;
  CUdeviceptr to[] = {device, device + kBytes, base + 2 * kBytes};
  CUdeviceptr from[] = {base, base + kBytes, device};
  size_t sizes[] = {kBytes, kBytes / 2, kBytes / 4}, indices[] = {0}, failed = 0;
  CUmemcpyAttributes attributes = {0};
  attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  DO(cuMemcpyBatchAsync, "cuMemcpyBatchAsync", 12080, to, from, sizes, 3, &attributes, indices, 1,
     &failed, stream);
  DO(cuMemcpyBatchAsync_v2, "cuMemcpyBatchAsync", 13000, to, from, sizes, 3, &attributes, indices,
     1, stream);
  CUDA_MEMCPY3D_BATCH_OP box = {0};
  box.src.type = box.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
  box.src.op.ptr.ptr = base, box.dst.op.ptr.ptr = device;
  box.src.op.ptr.rowLength = box.dst.op.ptr.rowLength = 64;
  box.extent.width = 32, box.extent.height = 4, box.extent.depth = 2;
  DO(cuMemcpy3DBatchAsync_v2, "cuMemcpy3DBatchAsync", 13000, 1, &box, 0, stream);
  DO(cuDeviceGet, "cuDeviceGet", 2000, &second, 1);
  DO(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", 7000, &other, second);
  DO(cuCtxSetCurrent, "cuCtxSetCurrent", 4000, other);
  DO(cuMemAlloc_v2, "cuMemAlloc", 3020, &there, kBytes);
  DO(cuCtxSetCurrent, "cuCtxSetCurrent", 4000, context);
  DO(cuMemcpyPeerAsync, "cuMemcpyPeerAsync", 4000, there, other, device, context, kBytes, stream);
  CUDA_MEMCPY3D_PEER peers = {0};
  peers.srcMemoryType = peers.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  peers.srcDevice = device, peers.dstDevice = there;
  peers.srcContext = context, peers.dstContext = other;
  peers.srcPitch = peers.dstPitch = 64, peers.WidthInBytes = 64, peers.Height = 2, peers.Depth = 1;
  DO(cuMemcpy3DPeerAsync, "cuMemcpy3DPeerAsync", 4000, &peers, stream);
  DO(cuStreamSynchronize, "cuStreamSynchronize", 2000, stream);
  DO(cuMemFree_v2, "cuMemFree", 3020, there);
  DO(cuMemFreeHost, "cuMemFreeHost", 2000, host);
  DO(cuMemFree_v2, "cuMemFree", 3020, device);
}

static void ways_managed(CUstream stream) {
  CUdeviceptr managed = 0;
  CUmemLocation place = {0};
  place.type = CU_MEM_LOCATION_TYPE_DEVICE;
  DO(cuMemAllocManaged, "cuMemAllocManaged", 6000, &managed, 1 << 16, CU_MEM_ATTACH_GLOBAL);
  DO(cuMemAdvise_v2, "cuMemAdvise", 12020, managed, 1 << 16, CU_MEM_ADVISE_SET_READ_MOSTLY, place);
  DO(cuMemPrefetchAsync_v2, "cuMemPrefetchAsync", 12020, managed, 1 << 16, place, 0, stream);
  DO(cuStreamSynchronize, "cuStreamSynchronize", 2000, stream);
  DO(cuMemFree_v2, "cuMemFree", 3020, managed);
}

// Streams with a priority, and of a green context: of some of the multiprocessors.
static void ways_streams(CUdevice device, CUfunction kernel) {
  void* pointer = NULL;
  void* arguments[1] = {&pointer};
  CUstream streams[2] = {NULL, NULL};
  CUdevResource resource;
  CUdevResourceDesc description = NULL;
  CUgreenCtx green = NULL;
  CUcontext context = NULL;
  CUdeviceptr memory = 0;
  DO(cuMemAlloc_v2, "cuMemAlloc", 3020, &memory, 64);
  DO(cuStreamCreateWithPriority, "cuStreamCreateWithPriority", 5050, &streams[0],
     CU_STREAM_NON_BLOCKING, -1);
  DO(cuDeviceGetDevResource, "cuDeviceGetDevResource", 12040, device, &resource,
     CU_DEV_RESOURCE_TYPE_SM);
  DO(cuDevResourceGenerateDesc, "cuDevResourceGenerateDesc", 12040, &description, &resource, 1);
  DO(cuGreenCtxCreate, "cuGreenCtxCreate", 12040, &green, description, device,
     CU_GREEN_CTX_DEFAULT_STREAM);
  DO(cuCtxFromGreenCtx, "cuCtxFromGreenCtx", 12040, &context, green);
  DO(cuGreenCtxStreamCreate, "cuGreenCtxStreamCreate", 12050, &streams[1], green,
     CU_STREAM_NON_BLOCKING, 0);
  for (int i = 0; i < 2; ++i) {
    DO(cuLaunchKernel, "cuLaunchKernel", 4000, kernel, 1, 1, 1, 64, 1, 1, 0, streams[i], arguments,
       NULL);
    DO(cuMemsetD8Async, "cuMemsetD8Async", 3020, memory, 1, 64, streams[i]);
    DO(cuStreamSynchronize, "cuStreamSynchronize", 2000, streams[i]);
    DO(cuStreamDestroy_v2, "cuStreamDestroy", 4000, streams[i]);
  }
  DO(cuMemFree_v2, "cuMemFree", 3020, memory);
  DO(cuGreenCtxDestroy, "cuGreenCtxDestroy", 12040, green);
}

// As an allocator with expandable segments does it.
static void ways_virtual_memory(CUstream stream) {
  const size_t page = 2 << 20;
  CUmemAllocationProp properties = {0};
  CUmemAccessDesc access = {0};
  CUdeviceptr range = 0;
  CUmemGenericAllocationHandle part[2] = {0, 0};
  DO(cuMemAddressReserve, "cuMemAddressReserve", 10020, &range, 2 * page, 0, 0, 0);
  for (int i = 0; i < 2; ++i) {
    DO(cuMemCreate, "cuMemCreate", 10020, &part[i], page, &properties, 0);
    DO(cuMemMap, "cuMemMap", 10020, range + i * page, page, 0, part[i], 0);
    DO(cuMemSetAccess, "cuMemSetAccess", 10020, range + i * page, page, &access, 1);
  }
  DO(cuMemsetD8Async, "cuMemsetD8Async", 3020, range, 0, page, stream);
  DO(cuStreamSynchronize, "cuStreamSynchronize", 2000, stream);
  for (int i = 0; i < 2; ++i) {
    DO(cuMemUnmap, "cuMemUnmap", 10020, range + i * page, page);
    DO(cuMemRelease, "cuMemRelease", 10020, part[i]);
  }
  DO(cuMemAddressFree, "cuMemAddressFree", 10020, range, 2 * page);
}

static void ways_events(CUstream stream) {
  CUevent event = NULL;
  DO(cuEventCreate, "cuEventCreate", 2000, &event, 0);
  DO(cuEventRecord, "cuEventRecord", 2000, event, stream);
  DO(cuStreamWaitEvent, "cuStreamWaitEvent", 3020, stream, event, 0);
  DO(cuEventSynchronize, "cuEventSynchronize", 2000, event);
  DO(cuEventDestroy_v2, "cuEventDestroy", 4000, event);
}

static void ways_graphs(CUfunction kernel, CUstream stream) {
  void* pointer = NULL;
  void* arguments[1] = {&pointer};
  CUgraph graph = NULL;
  CUgraphExec exec = NULL;
  DO(cuStreamBeginCapture_v2, "cuStreamBeginCapture", 10010, stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
  for (int i = 0; i < 3; ++i) {
    DO(cuLaunchKernel, "cuLaunchKernel", 4000, kernel, 1, 1, 1, 64, 1, 1, 0, stream, arguments,
       NULL);
  }
  DO(cuStreamEndCapture, "cuStreamEndCapture", 10000, stream, &graph);
  DO(cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags", 11040, &exec, graph, 0);
  for (int i = 0; i < 4; ++i) DO(cuGraphLaunch, "cuGraphLaunch", 10000, exec, stream);
  CUgraphExecUpdateResultInfo result;
  DO(cuGraphExecUpdate_v2, "cuGraphExecUpdate", 12000, exec, graph, &result);
  DO(cuGraphLaunch, "cuGraphLaunch", 10000, exec, stream);
  DO(cuStreamSynchronize, "cuStreamSynchronize", 2000, stream);
  DO(cuGraphExecDestroy, "cuGraphExecDestroy", 10000, exec);
  DO(cuGraphInstantiate_v2, "cuGraphInstantiate", 11000, &exec, graph, NULL, NULL, 0);
  DO(cuGraphLaunch, "cuGraphLaunch", 10000, exec, stream);
  DO(cuStreamSynchronize, "cuStreamSynchronize", 2000, stream);
  DO(cuGraphExecDestroy, "cuGraphExecDestroy", 10000, exec);
  CUDA_GRAPH_INSTANTIATE_PARAMS params = {0};
  DO(cuGraphInstantiateWithParams, "cuGraphInstantiateWithParams", 12000, &exec, graph, &params);
  DO(cuGraphExecDestroy, "cuGraphExecDestroy", 10000, exec);
  DO(cuGraphDestroy, "cuGraphDestroy", 10000, graph);
}

static int ways_work(void) {
  CUdevice device = 0;
  CUcontext context = NULL;
  CUmodule module = NULL;
  CUfunction kernel = NULL;
  CUstream stream = NULL;
  DO(cuInit, "cuInit", 2000, 0);
  DO(cuDeviceGet, "cuDeviceGet", 2000, &device, 0);
  DO(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", 7000, &context, device);
  DO(cuCtxSetCurrent, "cuCtxSetCurrent", 4000, context);
  DO(cuModuleLoadData, "cuModuleLoadData", 2000, &module, "");
  DO(cuModuleGetFunction, "cuModuleGetFunction", 2000, &kernel, module, "_Z11ways_kernelPf");
  DO(cuStreamCreate, "cuStreamCreate", 2000, &stream, CU_STREAM_NON_BLOCKING);
  ways_launches(kernel, stream);
  DO(cuProfilerStart, "cuProfilerStart", 4000);
  ways_memory(stream);
  ways_batches(context, stream);
  ways_managed(stream);
  ways_streams(device, kernel);
  ways_virtual_memory(stream);
  ways_events(stream);
  ways_graphs(kernel, stream);
  DO(cuProfilerStop, "cuProfilerStop", 4000);
  DO(cuCtxSynchronize, "cuCtxSynchronize", 2000);
  DO(cuStreamDestroy_v2, "cuStreamDestroy", 4000, stream);
  printf("host functions that ran: %d\n", g_ways_ran);
  return 0;
}
