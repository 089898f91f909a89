// SPDX-License-Identifier: Apache-2.0
// The same work with the CUDA runtime for every way of reaching it: some calls of each family.
// Before it a file defines CALL(function): how this way names the function.
#pragma once

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

static void ways_stub(void) {}
static int g_ways_ran = 0;
static void CUDART_CB ways_host_function(void* data) { *(int*)data += 1; }

static void ways_check(int error, const char* what) {
  if (error == 0) return;
  printf("%s: error %d\n", what, error);
  exit(90);
}
#define DO(function, ...) ways_check((int)CALL(function)(__VA_ARGS__), #function)

static void ways_register(void) {
  static struct {
    int magic, version;
    const void* data;
    void* unused;
  } binary = {0x466243b1, 1, "", NULL};
  static char name[] = "_Z11ways_kernelPf";
  void** const module = CALL(__cudaRegisterFatBinary)(&binary);
  CALL(__cudaRegisterFunction)
  (module, (const char*)(size_t)&ways_stub, name, name, -1, NULL, NULL, NULL, NULL, NULL);
  CALL(__cudaRegisterFatBinaryEnd)(module);
}

static void ways_launches(cudaStream_t stream) {
  const dim3 grid = {4, 2, 1}, block = {32, 2, 1};
  const void* const kernel = (const void*)(size_t)&ways_stub;
  void* pointer = NULL;
  void* arguments[1] = {&pointer};
  cudaLaunchConfig_t config = {0};
  config.gridDim = grid, config.blockDim = block, config.stream = stream;
  for (int i = 0; i < 20; ++i) DO(cudaLaunchKernel, kernel, grid, block, arguments, 128, stream);
  DO(cudaLaunchKernelExC, &config, kernel, arguments);
  DO(cudaLaunchCooperativeKernel, kernel, grid, block, arguments, 0, stream);
  DO(cudaLaunchHostFunc, stream, ways_host_function, &g_ways_ran);
}

static void ways_memory(cudaStream_t stream) {
  void *device = NULL, *other = NULL, *host = NULL, *managed = NULL, *pooled = NULL;
  DO(cudaMalloc, &device, 1 << 16);
  DO(cudaMalloc, &other, 1 << 16);
  DO(cudaMallocHost, &host, 1 << 16);
  DO(cudaMallocManaged, &managed, 4096, cudaMemAttachGlobal);
  DO(cudaMallocAsync, &pooled, 8192, stream);
  DO(cudaMemcpy, device, host, 1 << 16, cudaMemcpyHostToDevice);
  for (int i = 0; i < 5; ++i) {
    DO(cudaMemcpyAsync, other, device, 1 << 15, cudaMemcpyDeviceToDevice, stream);
    DO(cudaMemcpyAsync, host, device, 1 << 14, cudaMemcpyDeviceToHost, stream);
    DO(cudaMemsetAsync, device, 1, 1 << 12, stream);
  }
  DO(cudaMemset, other, 2, 1 << 10);
  DO(cudaStreamSynchronize, stream);
  DO(cudaFreeAsync, pooled, stream);
  DO(cudaFree, managed);
  DO(cudaFreeHost, host);
  DO(cudaFree, other);
  DO(cudaFree, device);
}

// One batch of two copies there and one back, and a box to another device.
static void ways_batches(cudaStream_t stream) {
  enum { kBytes = 1 << 12 };
  void *device = NULL, *host = NULL, *there = NULL;
  DO(cudaMalloc, &device, 2 * kBytes);
  DO(cudaMallocHost, &host, 3 * kBytes);
  void* to[] = {device, (char*)device + kBytes, (char*)host + 2 * kBytes};
  const void* from[] = {host, (char*)host + kBytes, device};
  size_t sizes[] = {kBytes, kBytes / 2, kBytes / 4}, indices[] = {0};
  struct cudaMemcpyAttributes attributes = {0};
  attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  DO(cudaMemcpyBatchAsync, to, from, sizes, 3, &attributes, indices, 1, stream);
  struct cudaMemcpy3DBatchOp box = {0};
  box.src.type = box.dst.type = cudaMemcpyOperandTypePointer;
  box.src.op.ptr.ptr = host, box.dst.op.ptr.ptr = device;
  box.src.op.ptr.rowLength = box.dst.op.ptr.rowLength = 64;
  box.extent.width = 32, box.extent.height = 4, box.extent.depth = 2;
  box.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  DO(cudaMemcpy3DBatchAsync, 1, &box, 0, stream);
  DO(cudaSetDevice, 1);
  DO(cudaMalloc, &there, kBytes);
  DO(cudaSetDevice, 0);
  DO(cudaMemcpyPeerAsync, there, 1, device, 0, kBytes, stream);
  struct cudaMemcpy3DPeerParms peers = {0};
  peers.srcPtr.ptr = device, peers.dstPtr.ptr = there, peers.dstDevice = 1;
  peers.srcPtr.pitch = peers.dstPtr.pitch = 64;
  peers.extent.width = 64, peers.extent.height = 2, peers.extent.depth = 1;
  DO(cudaMemcpy3DPeerAsync, &peers, stream);
  DO(cudaStreamSynchronize, stream);
  DO(cudaFree, there);
  DO(cudaFreeHost, host);
  DO(cudaFree, device);
}

static void ways_managed(cudaStream_t stream) {
  void* managed = NULL;
  struct cudaMemLocation place = {0};
  place.type = cudaMemLocationTypeDevice;
  DO(cudaMallocManaged, &managed, 1 << 16, cudaMemAttachGlobal);
  DO(cudaMemAdvise, managed, 1 << 16, cudaMemAdviseSetPreferredLocation, place);
  DO(cudaMemPrefetchAsync, managed, 1 << 16, place, 0, stream);
  DO(cudaStreamSynchronize, stream);
  DO(cudaFree, managed);
}

static void ways_priorities(void) {
  const dim3 grid = {1, 1, 1}, block = {64, 1, 1};
  void* pointer = NULL;
  void* arguments[1] = {&pointer};
  cudaStream_t stream = NULL;
  DO(cudaStreamCreateWithPriority, &stream, cudaStreamNonBlocking, -1);
  DO(cudaLaunchKernel, (const void*)(size_t)&ways_stub, grid, block, arguments, 0, stream);
  DO(cudaStreamSynchronize, stream);
  DO(cudaStreamDestroy, stream);
}

static void ways_events(cudaStream_t stream) {
  cudaEvent_t event = NULL;
  DO(cudaEventCreateWithFlags, &event, 0);
  DO(cudaEventRecord, event, stream);
  DO(cudaStreamWaitEvent, stream, event, 0);
  DO(cudaEventSynchronize, event);
  DO(cudaEventDestroy, event);
}

static void ways_graphs(cudaStream_t stream) {
  const dim3 grid = {1, 1, 1}, block = {64, 1, 1};
  void* pointer = NULL;
  void* arguments[1] = {&pointer};
  cudaGraph_t graph = NULL;
  cudaGraphExec_t exec = NULL;
  DO(cudaStreamBeginCapture, stream, cudaStreamCaptureModeGlobal);
  for (int i = 0; i < 3; ++i) {
    DO(cudaLaunchKernel, (const void*)(size_t)&ways_stub, grid, block, arguments, 0, stream);
  }
  DO(cudaStreamEndCapture, stream, &graph);
  DO(cudaGraphInstantiateWithFlags, &exec, graph, 0);
  DO(cudaGraphUpload, exec, stream);
  for (int i = 0; i < 4; ++i) DO(cudaGraphLaunch, exec, stream);
  cudaGraphExecUpdateResultInfo result;
  DO(cudaGraphExecUpdate, exec, graph, &result);
  DO(cudaGraphLaunch, exec, stream);
  DO(cudaStreamSynchronize, stream);
  DO(cudaGraphExecDestroy, exec);
  cudaGraphInstantiateParams params = {0};
  DO(cudaGraphInstantiateWithParams, &exec, graph, &params);
  DO(cudaGraphLaunch, exec, stream);
  DO(cudaStreamSynchronize, stream);
  DO(cudaGraphExecDestroy, exec);
  DO(cudaGraphInstantiate, &exec, graph, 0);
  DO(cudaGraphExecDestroy, exec);
  DO(cudaGraphDestroy, graph);
}

static int ways_work(void) {
  cudaStream_t stream = NULL;
  ways_register();
  DO(cudaProfilerStart);
  DO(cudaStreamCreateWithFlags, &stream, cudaStreamNonBlocking);
  ways_launches(stream);
  ways_memory(stream);
  ways_batches(stream);
  ways_managed(stream);
  ways_priorities();
  ways_events(stream);
  ways_graphs(stream);
  DO(cudaProfilerStop);
  DO(cudaDeviceSynchronize);
  DO(cudaStreamDestroy, stream);
  printf("host functions that ran: %d\n", g_ways_ran);
  return 0;
}
