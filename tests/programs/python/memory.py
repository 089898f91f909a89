# SPDX-License-Identifier: Apache-2.0
"""Allocates and frees on a GPU, through ctypes; each cudaDeviceSynchronize is a step.

usage: memory.py threads [kill]   four threads allocate and free at random
       memory.py weights [kill]   some memory for good in step 0, more in each step
       memory.py full [abort|on|again]  allocates until there is no more, in step 3; on: steps follow;
                                        again: frees that, and gets as much as was refused
"""
import ctypes
import glob
import os
import random
import sys
import threading
import time

cudart = ctypes.CDLL("libcudart.so.13")
MIB = 1 << 20


def allocate(size, function="cudaMalloc"):
    memory = ctypes.c_void_p()
    result = getattr(cudart, function)(ctypes.byref(memory), ctypes.c_size_t(size))
    return memory if result == 0 else None


def free(memory, function="cudaFree"):
    assert getattr(cudart, function)(memory) == 0


def churn(seed):
    numbers = random.Random(seed)
    cudart.cudaSetDevice(seed % 2)
    kept = []
    for _ in range(1500):
        if kept and numbers.random() < 0.48:
            free(*kept.pop(numbers.randrange(len(kept))))
        else:
            host = numbers.random() < 0.1
            memory = allocate(numbers.randrange(1, 65536), "cudaMallocHost" if host else "cudaMalloc")
            kept.append((memory, "cudaFreeHost" if host else "cudaFree"))


def make_weights():
    return [allocate(MIB * (i + 1)) for i in range(8)]


def step():
    assert cudart.cudaDeviceSynchronize() == 0


def fill():
    kept = []
    while True:
        kept.append(allocate(16 * MIB))
        if kept[-1] is None:
            return kept


def main(what, then=""):
    if what == "threads":
        threads = [threading.Thread(target=churn, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    elif what == "weights":
        free(allocate(MIB))  # in the first call of all, Python's frames are not known yet
        weights = make_weights()
        for number in range(10):
            step()
            activations = [allocate(MIB), allocate(2 * MIB)]
            if number == 5:
                free(weights.pop(0))
            free(activations[0])
    else:
        make_weights()
        for _ in range(3):
            step()
        kept = fill()
        for memory in kept[:-1]:
            free(memory)
        if then == "again":
            assert allocate(16 * MIB)
    if then == "kill":
        for _ in range(2000 if what == "weights" else 0):  # until the dump of its window is there
            if glob.glob(os.environ["GPUPROF_OUTPUT"] + "/*/*.gpuprof"):
                break
            time.sleep(0.01)
        os.kill(os.getpid(), 9)
    elif then == "on":
        for _ in range(30):
            step()
    elif then == "abort":
        os.abort()


main(*sys.argv[1:])
