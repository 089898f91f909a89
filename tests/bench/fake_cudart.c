// SPDX-License-Identifier: Apache-2.0
// libcudart.so.13 whose functions return at once: what is left of a call is the call, and our hook.
#include <stddef.h>

int cudaEventRecord(void* event, void* stream) { return (void)event, (void)stream, 0; }

typedef struct {
  unsigned x, y, z;
} dim3;

int cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments, size_t shared,
                     void* stream) {
  return (void)function, (void)grid, (void)block, (void)arguments, (void)shared, (void)stream, 0;
}

// Of other libraries, too: a hook finds them by name.
int cuLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                   void* stream, void** arguments, void** extra) {
  (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y, (void)block_z;
  return (void)function, (void)shared, (void)stream, (void)arguments, (void)extra, 0;
}
int cudaGraphLaunch(void* graph, void* stream) { return (void)graph, (void)stream, 0; }
int cudaMemcpyAsync(void* to, const void* from, size_t bytes, int kind, void* stream) {
  return (void)to, (void)from, (void)bytes, (void)kind, (void)stream, 0;
}
int cudaMemsetAsync(void* to, int value, size_t bytes, void* stream) {
  return (void)to, (void)value, (void)bytes, (void)stream, 0;
}
int cudaMalloc(void** out, size_t bytes) { return *out = &out, (void)bytes, 0; }
int cudaFree(void* memory) { return (void)memory, 0; }
int cudaStreamSynchronize(void* stream) { return (void)stream, 0; }
int cudaStreamCreateWithFlags(void** out, unsigned flags) { return *out = &out, (void)flags, 0; }
int cudaEventCreate(void** out) { return *out = &out, 0; }
int cudaEventSynchronize(void* event) { return (void)event, 0; }
int cudaDeviceSynchronize(void) { return 0; }
void** __cudaRegisterFatBinary(void* binary) { return binary; }
void __cudaRegisterFatBinaryEnd(void** handle) { (void)handle; }
void __cudaRegisterFunction(void** handle, const char* host, char* device, const char* name,
                            int limit, void* tid, void* bid, void* block, void* grid, int* warp) {
  (void)handle, (void)host, (void)device, (void)name, (void)limit;
  (void)tid, (void)bid, (void)block, (void)grid, (void)warp;
}
int ncclAllReduce(const void* from, void* to, size_t count, int type, int operation,
                  void* communicator, void* stream) {
  (void)from, (void)to, (void)count, (void)type, (void)operation;
  return (void)communicator, (void)stream, 0;
}

int cudaGetDeviceCount(int* count) { return *count = 0, 0; }
int cudaDriverGetVersion(int* version) { return *version = 13000, 0; }
int cudaRuntimeGetVersion(int* version) { return *version = 13000, 0; }
