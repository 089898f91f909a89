#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small training-like loop in plain Python: the CUDA runtime through ctypes, nothing to install.

    python3 examples/train.py                  # on a GPU, or on the simulated CUDA stack
    gpuprof run -- python3 examples/train.py   # the same, profiled

Each step loads a batch, copies it to the device, runs a forward and a backward pass over the layers,
updates the weights, reads the loss back, and ends with cudaDeviceSynchronize.

On a real GPU the kernels are compiled by NVRTC where that library is found; without it the copies,
sets, allocations, events and synchronisations alone are run, and the program says so.
"""
import argparse
import ctypes
import random
import sys
import time
from ctypes import byref, c_char_p, c_int, c_longlong, c_size_t, c_uint, c_uint64, c_void_p

HOST_TO_DEVICE, DEVICE_TO_HOST = 1, 2
BATCH_FLOATS = 256 * 1024
KERNELS = ("gemm_forward", "relu", "gemm_backward", "sgd_update")

# A kernel that keeps the GPU busy for `ns` nanoseconds.
SOURCE = "\n".join(
    """extern "C" __global__ void %s(float* data, long long ns) {
         unsigned long long begin, now;
         asm volatile("mov.u64 %%0, %%globaltimer;" : "=l"(begin));
         do { asm volatile("mov.u64 %%0, %%globaltimer;" : "=l"(now)); } while (now - begin < ns);
         if (ns < 0) data[0] += 1;
       }""" % name for name in KERNELS)


class Dim3(ctypes.Structure):
    _fields_ = [("x", c_uint), ("y", c_uint), ("z", c_uint)]


def load_library(*names):
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


class Cuda:
    """The CUDA runtime; every call raises on an error."""

    def __init__(self):
        self.lib = load_library("libcudart.so.13", "libcudart.so.12", "libcudart.so")
        if self.lib is None:
            sys.exit("train.py: no libcudart.so.13 or .12 found. Install the CUDA runtime, or put a "
                     "folder that has it (or the simulated one) into LD_LIBRARY_PATH.")
        self.lib.cudaGetErrorString.restype = c_char_p

    def call(self, name, *args):
        error = getattr(self.lib, name)(*args)
        if error != 0:
            raise RuntimeError("%s: %s" % (name, self.lib.cudaGetErrorString(error).decode()))

    def new(self, name, *args):
        """Calls a function whose first argument receives a handle or pointer, and returns that."""
        out = c_void_p()
        self.call(name, byref(out), *args)
        return out


class SimulatedKernels:
    """Kernels of the simulated CUDA stack: a name and a duration."""

    def __init__(self, cuda):
        self.cuda = cuda
        register = cuda.lib.simcuda_register_kernel
        register.restype = c_void_p
        self.functions = {name: c_void_p(register(name.encode())) for name in KERNELS}

    def launch(self, name, stream, ns):
        self.cuda.lib.simcuda_set_next_kernel_ns(c_uint64(ns))
        self.cuda.call("cudaLaunchKernel", self.functions[name], Dim3(64, 1, 1), Dim3(256, 1, 1), None,
                       c_size_t(0), stream)


class CompiledKernels:
    """Real kernels, compiled by NVRTC and loaded through the runtime."""

    def __init__(self, cuda, nvrtc, data):
        self.cuda = cuda
        self.data = data
        library = c_void_p()
        self.image = self.compile(nvrtc)
        cuda.call("cudaLibraryLoadData", byref(library), self.image, None, None, c_uint(0), None, None, c_uint(0))
        self.functions = {}
        for name in KERNELS:
            self.functions[name] = cuda.new("cudaLibraryGetKernel", library, name.encode())

    def compile(self, nvrtc):
        program = c_void_p()
        major, minor = c_int(), c_int()
        self.cuda.call("cudaDeviceGetAttribute", byref(major), c_int(75), c_int(0))
        self.cuda.call("cudaDeviceGetAttribute", byref(minor), c_int(76), c_int(0))
        option = c_char_p(b"--gpu-architecture=sm_%d%d" % (major.value, minor.value))
        size = c_size_t()
        failed = (nvrtc.nvrtcCreateProgram(byref(program), SOURCE.encode(), b"train.cu", 0, None, None)
                  or nvrtc.nvrtcCompileProgram(program, 1, byref(option))
                  or nvrtc.nvrtcGetCUBINSize(program, byref(size)))
        if failed:
            raise RuntimeError("NVRTC could not compile the kernels (error %d)" % failed)
        image = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetCUBIN(program, image)
        return image

    def launch(self, name, stream, ns):
        data, duration = c_void_p(self.data.value), c_longlong(ns)
        args = (c_void_p * 2)(ctypes.addressof(data), ctypes.addressof(duration))
        self.cuda.call("cudaLaunchKernel", self.functions[name], Dim3(1, 1, 1), Dim3(32, 1, 1), args,
                       c_size_t(0), stream)


class NoKernels:
    def launch(self, name, stream, ns):
        pass


def make_kernels(cuda, data):
    if hasattr(cuda.lib, "simcuda_register_kernel"):
        return SimulatedKernels(cuda)
    nvrtc = load_library("libnvrtc.so.13", "libnvrtc.so.12")
    if nvrtc is None or not hasattr(cuda.lib, "cudaLibraryLoadData"):
        print("train.py: no NVRTC found: running without kernels", file=sys.stderr)
        return NoKernels()
    return CompiledKernels(cuda, nvrtc, data)


class Trainer:
    def __init__(self, cuda, options):
        self.cuda = cuda
        self.options = options
        self.random = random.Random(7)
        self.bytes = c_size_t(BATCH_FLOATS * 4)
        cuda.call("cudaSetDevice", c_int(0))
        self.stream = cuda.new("cudaStreamCreate")
        self.copied = cuda.new("cudaEventCreate")
        self.batch_host = cuda.new("cudaMallocHost", self.bytes)
        self.loss_host = cuda.new("cudaMallocHost", c_size_t(4))
        self.batch = cuda.new("cudaMalloc", self.bytes)
        self.gradients = cuda.new("cudaMalloc", self.bytes)
        self.kernels = make_kernels(cuda, self.gradients)

    def load_batch(self):
        time.sleep(self.options.data_ms / 1000)
        ctypes.c_float.from_address(self.batch_host.value).value = self.random.random()

    def launch(self, name, share):
        self.kernels.launch(name, self.stream, int(self.options.kernel_us * 1000 * share))

    def step(self, index):
        cuda, stream = self.cuda, self.stream
        self.load_batch()
        cuda.call("cudaMemcpyAsync", self.batch, self.batch_host, self.bytes, c_int(HOST_TO_DEVICE), stream)
        cuda.call("cudaEventRecord", self.copied, stream)
        cuda.call("cudaMemsetAsync", self.gradients, c_int(0), self.bytes, stream)
        for _ in range(self.options.layers):
            self.launch("gemm_forward", 1.0)
            self.launch("relu", 0.1)
        for _ in range(self.options.layers):
            self.launch("gemm_backward", 2.0)
        self.launch("sgd_update", 0.5)
        scratch = cuda.new("cudaMallocAsync", c_size_t(1 << 16), stream)
        cuda.call("cudaFreeAsync", scratch, stream)
        cuda.call("cudaMemcpyAsync", self.loss_host, self.batch, c_size_t(4), c_int(DEVICE_TO_HOST), stream)
        if self.options.markers == "sync":
            cuda.call("cudaDeviceSynchronize")  # what gpuprof takes as the end of a step
        else:
            cuda.call("cudaStreamSynchronize", stream)
        noise = ctypes.c_float.from_address(self.loss_host.value).value
        return 2.3 * 0.95 ** index + 0.1 * noise

    def close(self):
        for pointer in (self.batch, self.gradients):
            self.cuda.call("cudaFree", pointer)
        for pointer in (self.batch_host, self.loss_host):
            self.cuda.call("cudaFreeHost", pointer)
        self.cuda.call("cudaEventDestroy", self.copied)
        self.cuda.call("cudaStreamDestroy", self.stream)


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("%s is not a number above 0" % text)
    return value


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=positive, default=30)
    parser.add_argument("--layers", type=positive, default=6)
    parser.add_argument("--kernel-us", type=float, default=200, help="time of a layer's forward kernel")
    parser.add_argument("--data-ms", type=float, default=1, help="time to load a batch")
    parser.add_argument("--markers", choices=("sync", "none"), default="sync",
                        help="sync: one cudaDeviceSynchronize a step; none: one stream synchronisation")
    options = parser.parse_args()
    try:
        trainer = Trainer(Cuda(), options)
        for index in range(options.steps):
            print("step %d  loss %.4f" % (index, trainer.step(index)))
        trainer.close()
    except RuntimeError as error:
        sys.exit("train.py: %s" % error)
    print("done: %d steps" % options.steps)


if __name__ == "__main__":
    main()
