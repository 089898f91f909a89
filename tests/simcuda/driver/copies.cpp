// SPDX-License-Identifier: Apache-2.0
// The driver's copies and sets.
#include "tests/simcuda/driver/driver_api.h"

namespace gpuprof::simcuda {
namespace {

struct Side {
  void* address;
  size_t pitch;
};

Side side(CUmemorytype type, void* host, CUdeviceptr device, size_t x, size_t y, size_t pitch) {
  char* const base = static_cast<char*>(type == CU_MEMORYTYPE_HOST ? host : pointer(device));
  return {base + y * pitch + x, pitch};
}
Side target(const CUDA_MEMCPY2D& c) {
  return side(c.dstMemoryType, c.dstHost, c.dstDevice, c.dstXInBytes, c.dstY, c.dstPitch);
}
Side source(const CUDA_MEMCPY2D& c) {
  return side(c.srcMemoryType, const_cast<void*>(c.srcHost), c.srcDevice, c.srcXInBytes, c.srcY,
              c.srcPitch);
}

using Copy2d = cudaError_t (*)(void*, size_t, const void*, size_t, size_t, size_t, cudaMemcpyKind,
                               cudaStream_t);
cudaError_t sync_2d(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                    size_t height, cudaMemcpyKind kind, cudaStream_t) {
  return cudaMemcpy2D(to, to_pitch, from, from_pitch, width, height, kind);
}
cudaError_t sync_2d_ptds(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                         size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t) {
  return cudaMemcpy2D_ptds(to, to_pitch, from, from_pitch, width, height, kind);
}

CUresult copy_2d(const ApiInfo& api, Copy2d copy, const CUDA_MEMCPY2D* c, CUstream stream) {
  if (c == nullptr) return driver_only(api, [](ApiCall&) { return cudaErrorInvalidValue; });
  return as_driver(api, [&] {
    const Side to = target(*c), from = source(*c);
    return copy(to.address, to.pitch, from.address, from.pitch, c->WidthInBytes, c->Height,
                cudaMemcpyDefault, stream);
  });
}

// Slices that lie back to back, as those of all who use the simulator do.
CUresult copy_3d(const ApiInfo& api, Copy2d copy, const CUDA_MEMCPY3D* c, CUstream stream) {
  if (c == nullptr) return driver_only(api, [](ApiCall&) { return cudaErrorInvalidValue; });
  return as_driver(api, [&] {
    const Side to =
        side(c->dstMemoryType, c->dstHost, c->dstDevice, c->dstXInBytes, c->dstY, c->dstPitch);
    const Side from = side(c->srcMemoryType, const_cast<void*>(c->srcHost), c->srcDevice,
                           c->srcXInBytes, c->srcY, c->srcPitch);
    return copy(to.address, to.pitch, from.address, from.pitch, c->WidthInBytes,
                c->Height * c->Depth, cudaMemcpyDefault, stream);
  });
}

}  // namespace
}  // namespace gpuprof::simcuda

using namespace gpuprof::simcuda;

// Each is two exported functions: with the default stream of all threads, and of the calling one.
#define SIM_COPY(name, To, From, kind)                                                           \
  SIM_API(name)                                                                                  \
  SIM_API(name##_ptds)                                                                           \
  CUresult name(To to, From from, size_t n) {                                                    \
    return as_driver(k_##name, [&] { return cudaMemcpy(pointer(to), pointer(from), n, kind); }); \
  }                                                                                              \
  CUresult name##_ptds(To to, From from, size_t n) {                                             \
    return as_driver(k_##name##_ptds,                                                            \
                     [&] { return cudaMemcpy_ptds(pointer(to), pointer(from), n, kind); });      \
  }
#define SIM_COPY_ASYNC(name, To, From, kind)                                                     \
  SIM_API(name)                                                                                  \
  SIM_API(name##_ptsz)                                                                           \
  CUresult name(To to, From from, size_t n, CUstream stream) {                                   \
    return as_driver(                                                                            \
        k_##name, [&] { return cudaMemcpyAsync(pointer(to), pointer(from), n, kind, stream); }); \
  }                                                                                              \
  CUresult name##_ptsz(To to, From from, size_t n, CUstream stream) {                            \
    return as_driver(k_##name##_ptsz, [&] {                                                      \
      return cudaMemcpyAsync_ptsz(pointer(to), pointer(from), n, kind, stream);                  \
    });                                                                                          \
  }
#define SIM_COPY_PEER(name)                                                                \
  SIM_API(name)                                                                            \
  CUresult name(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t n) {        \
    return as_driver(k_##name,                                                             \
                     [&] { return cudaMemcpyPeer(pointer(to), 1, pointer(from), 0, n); }); \
  }
#define SIM_COPY_PEER_ASYNC(name)                                                 \
  SIM_API(name)                                                                   \
  CUresult name(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t n, \
                CUstream stream) {                                                \
    return as_driver(k_##name, [&] {                                              \
      return cudaMemcpyPeerAsync(pointer(to), 1, pointer(from), 0, n, stream);    \
    });                                                                           \
  }
#define SIM_COPY_2D(name, Struct, body, copy) \
  SIM_API(name)                               \
  CUresult name(const Struct* c) { return body(k_##name, copy, c, nullptr); }
#define SIM_COPY_2D_ASYNC(name, Struct, body, copy) \
  SIM_API(name)                                     \
  CUresult name(const Struct* c, CUstream stream) { return body(k_##name, copy, c, stream); }
#define SIM_SET(name, Value)                                                                   \
  SIM_API(name##_v2)                                                                           \
  SIM_API(name##_v2_ptds)                                                                      \
  SIM_API(name##Async)                                                                         \
  SIM_API(name##Async_ptsz)                                                                    \
  CUresult name##_v2(CUdeviceptr to, Value value, size_t n) {                                  \
    return as_driver(k_##name##_v2,                                                            \
                     [&] { return cudaMemset(pointer(to), value & 0xff, n * sizeof value); }); \
  }                                                                                            \
  CUresult name##_v2_ptds(CUdeviceptr to, Value value, size_t n) {                             \
    return as_driver(k_##name##_v2_ptds, [&] {                                                 \
      return cudaMemset_ptds(pointer(to), value & 0xff, n * sizeof value);                     \
    });                                                                                        \
  }                                                                                            \
  CUresult name##Async(CUdeviceptr to, Value value, size_t n, CUstream stream) {               \
    return as_driver(k_##name##Async, [&] {                                                    \
      return cudaMemsetAsync(pointer(to), value & 0xff, n * sizeof value, stream);             \
    });                                                                                        \
  }                                                                                            \
  CUresult name##Async_ptsz(CUdeviceptr to, Value value, size_t n, CUstream stream) {          \
    return as_driver(k_##name##Async_ptsz, [&] {                                               \
      return cudaMemsetAsync_ptsz(pointer(to), value & 0xff, n * sizeof value, stream);        \
    });                                                                                        \
  }
#define SIM_SET_2D(name, Value)                                                                 \
  SIM_API(name##_v2)                                                                            \
  SIM_API(name##_v2_ptds)                                                                       \
  SIM_API(name##Async)                                                                          \
  SIM_API(name##Async_ptsz)                                                                     \
  CUresult name##_v2(CUdeviceptr to, size_t pitch, Value value, size_t width, size_t height) {  \
    return as_driver(k_##name##_v2, [&] {                                                       \
      return cudaMemset2D(pointer(to), pitch, value & 0xff, width * sizeof value, height);      \
    });                                                                                         \
  }                                                                                             \
  CUresult name##_v2_ptds(CUdeviceptr to, size_t pitch, Value value, size_t width,              \
                          size_t height) {                                                      \
    return as_driver(k_##name##_v2_ptds, [&] {                                                  \
      return cudaMemset2D_ptds(pointer(to), pitch, value & 0xff, width * sizeof value, height); \
    });                                                                                         \
  }                                                                                             \
  CUresult name##Async(CUdeviceptr to, size_t pitch, Value value, size_t width, size_t height,  \
                       CUstream stream) {                                                       \
    return as_driver(k_##name##Async, [&] {                                                     \
      return cudaMemset2DAsync(pointer(to), pitch, value & 0xff, width * sizeof value, height,  \
                               stream);                                                         \
    });                                                                                         \
  }                                                                                             \
  CUresult name##Async_ptsz(CUdeviceptr to, size_t pitch, Value value, size_t width,            \
                            size_t height, CUstream stream) {                                   \
    return as_driver(k_##name##Async_ptsz, [&] {                                                \
      return cudaMemset2DAsync_ptsz(pointer(to), pitch, value & 0xff, width * sizeof value,     \
                                    height, stream);                                            \
    });                                                                                         \
  }

extern "C" {

SIM_COPY(cuMemcpy, CUdeviceptr, CUdeviceptr, cudaMemcpyDefault)
SIM_COPY(cuMemcpyHtoD_v2, CUdeviceptr, const void*, cudaMemcpyHostToDevice)
SIM_COPY(cuMemcpyDtoH_v2, void*, CUdeviceptr, cudaMemcpyDeviceToHost)
SIM_COPY(cuMemcpyDtoD_v2, CUdeviceptr, CUdeviceptr, cudaMemcpyDeviceToDevice)
SIM_COPY_ASYNC(cuMemcpyAsync, CUdeviceptr, CUdeviceptr, cudaMemcpyDefault)
SIM_COPY_ASYNC(cuMemcpyHtoDAsync_v2, CUdeviceptr, const void*, cudaMemcpyHostToDevice)
SIM_COPY_ASYNC(cuMemcpyDtoHAsync_v2, void*, CUdeviceptr, cudaMemcpyDeviceToHost)
SIM_COPY_ASYNC(cuMemcpyDtoDAsync_v2, CUdeviceptr, CUdeviceptr, cudaMemcpyDeviceToDevice)
SIM_COPY_PEER(cuMemcpyPeer)
SIM_COPY_PEER(cuMemcpyPeer_ptds)
SIM_COPY_PEER_ASYNC(cuMemcpyPeerAsync)
SIM_COPY_PEER_ASYNC(cuMemcpyPeerAsync_ptsz)
SIM_COPY_2D(cuMemcpy2D_v2, CUDA_MEMCPY2D, copy_2d, sync_2d)
SIM_COPY_2D(cuMemcpy2D_v2_ptds, CUDA_MEMCPY2D, copy_2d, sync_2d_ptds)
SIM_COPY_2D(cuMemcpy2DUnaligned_v2, CUDA_MEMCPY2D, copy_2d, sync_2d)
SIM_COPY_2D(cuMemcpy2DUnaligned_v2_ptds, CUDA_MEMCPY2D, copy_2d, sync_2d_ptds)
SIM_COPY_2D_ASYNC(cuMemcpy2DAsync_v2, CUDA_MEMCPY2D, copy_2d, cudaMemcpy2DAsync)
SIM_COPY_2D_ASYNC(cuMemcpy2DAsync_v2_ptsz, CUDA_MEMCPY2D, copy_2d, cudaMemcpy2DAsync_ptsz)
SIM_COPY_2D(cuMemcpy3D_v2, CUDA_MEMCPY3D, copy_3d, sync_2d)
SIM_COPY_2D(cuMemcpy3D_v2_ptds, CUDA_MEMCPY3D, copy_3d, sync_2d_ptds)
SIM_COPY_2D_ASYNC(cuMemcpy3DAsync_v2, CUDA_MEMCPY3D, copy_3d, cudaMemcpy2DAsync)
SIM_COPY_2D_ASYNC(cuMemcpy3DAsync_v2_ptsz, CUDA_MEMCPY3D, copy_3d, cudaMemcpy2DAsync_ptsz)
SIM_SET(cuMemsetD8, unsigned char)
SIM_SET(cuMemsetD16, unsigned short)
SIM_SET(cuMemsetD32, unsigned)
SIM_SET_2D(cuMemsetD2D8, unsigned char)
SIM_SET_2D(cuMemsetD2D16, unsigned short)
SIM_SET_2D(cuMemsetD2D32, unsigned)

}  // extern "C"
