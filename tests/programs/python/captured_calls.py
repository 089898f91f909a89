# SPDX-License-Identifier: Apache-2.0
"""Captures kernel launches into a CUDA graph and launches the graph three times.

usage: captured_calls.py [kill]"""
import ctypes
import os
import signal
import sys
import time

cudart = ctypes.CDLL("libcudart.so.13")


class Dim3(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint) for name in "xyz"]


class FatBinary(ctypes.Structure):
    _fields_ = [("magic", ctypes.c_int), ("version", ctypes.c_int), ("data", ctypes.c_char_p), ("unused", ctypes.c_void_p)]


def check(error):
    assert error == 0, error


def registered(name):
    """A kernel, as the code that nvcc generates makes one known."""
    function, binary = ctypes.create_string_buffer(1), FatBinary(0x466243b1, 1, b"", None)
    register = cudart["__cudaRegisterFatBinary"]
    register.restype = ctypes.c_void_p
    handle = ctypes.c_void_p(register(ctypes.byref(binary)))
    cudart["__cudaRegisterFunction"](handle, function, name, name, -1, *[None] * 5)
    cudart["__cudaRegisterFatBinaryEnd"](handle)
    return function, binary


KERNEL, BINARY = registered(b"_Z6kernelPf")
POINTER = ctypes.c_void_p()
ARGUMENTS = (ctypes.c_void_p * 1)(ctypes.addressof(POINTER))


def launch(stream):
    check(cudart.cudaLaunchKernel(KERNEL, Dim3(2, 1, 1), Dim3(64, 1, 1), ARGUMENTS, ctypes.c_size_t(0), stream))


class Model:
    def forward(self, stream):
        launch(stream)
        self.backward(stream)

    def backward(self, stream):
        launch(stream)


def captured(stream):
    check(cudart.cudaStreamBeginCapture(stream, 0))
    Model().forward(stream)
    graph, executable = ctypes.c_void_p(), ctypes.c_void_p()
    check(cudart.cudaStreamEndCapture(stream, ctypes.byref(graph)))
    check(cudart.cudaGraphInstantiate(ctypes.byref(executable), graph, ctypes.c_ulonglong(0)))
    return executable


def main():
    check(cudart.cudaDeviceSynchronize())  # gpuprof's session begins
    stream = ctypes.c_void_p()
    check(cudart.cudaStreamCreate(ctypes.byref(stream)))
    executable = captured(stream)
    for _ in range(3):
        check(cudart.cudaGraphLaunch(executable, stream))
    check(cudart.cudaDeviceSynchronize())
    if sys.argv[1:] == ["kill"]:
        time.sleep(2)  # GPU times come in buffers
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
