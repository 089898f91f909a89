# SPDX-License-Identifier: Apache-2.0
"""What scripts of the tests do on a GPU, through ctypes."""
import ctypes

_cudart = ctypes.CDLL("libcudart.so.13")
_BYTES = ctypes.c_size_t(1 << 20)
_memory = ctypes.c_void_p()
assert _cudart.cudaMalloc(ctypes.byref(_memory), _BYTES) == 0


def give():
    """A little work without a wait."""
    assert _cudart.cudaMemsetAsync(_memory, 0, _BYTES, None) == 0


def work():
    """A little work, and a wait for it: a step."""
    assert _cudart.cudaMemsetAsync(_memory, 0, _BYTES, None) == 0
    assert _cudart.cudaDeviceSynchronize() == 0


def fence():
    assert _cudart.cudaDeviceSynchronize() == 0


def copy_within():
    """A copy from GPU memory to GPU memory, without a wait."""
    half = ctypes.c_size_t(1 << 19)
    assert _cudart.cudaMemcpyAsync(ctypes.c_void_p(_memory.value + half.value), _memory, half, 3, None) == 0


def copy_in(source=ctypes.create_string_buffer(1 << 16)):
    assert _cudart.cudaMemcpyAsync(_memory, source, ctypes.c_size_t(len(source)), 1, None) == 0
