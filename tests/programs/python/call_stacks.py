# SPDX-License-Identifier: Apache-2.0
"""Calls CUDA from many kinds of Python code, and writes the stack that Python sees at each call to a file.

usage: call_stacks.py FILE"""
import asyncio
import ctypes
import functools
import json
import sys
import threading

cudart = ctypes.CDLL("libcudart.so.13")
seen = []


def here():
    """[file, function, line] of each frame of the caller's stack, innermost first."""
    frame, out = sys._getframe(1), []
    while frame:
        code = frame.f_code
        out.append([code.co_filename, getattr(code, "co_qualname", code.co_name), frame.f_lineno])
        frame = frame.f_back
    return out


def call():
    seen.append(here()), cudart.cudaDeviceSynchronize()


class Model:
    def __call__(self, depth):
        return sorted([1], key=lambda _: self.forward(depth))

    def forward(self, depth):
        call() if depth == 0 else self(depth - 1)

    @property
    def value(self):
        return call()

    def __del__(self):
        call()


class Made:
    """Made often enough for an interpreter to specialise it."""
    def __init__(self):
        call()


def numbers():
    call()
    yield from (call() for _ in range(2))


async def wait():
    await asyncio.sleep(0)
    call()


def decorated(function):
    @functools.wraps(function)
    def inner(*arguments):
        return function(*arguments)
    return inner


@decorated
def deep(n):
    return deep(n - 1) if n else call()


def in_handler():
    try:
        {}["x"]
    except KeyError:
        call()
    finally:
        call()


def main():
    model = Model()
    for _ in range(2):
        model(2)
    model.value
    [Made() for _ in range(40)]
    list(numbers())
    asyncio.run(wait())
    [call() for _ in range(2)]
    deep(3)
    deep(150)  # more frames than a stack has
    in_handler()
    exec(compile("\n\ndef run():\n    call()\nrun()\n", "<made>", "exec"), {"call": call})
    thread = threading.Thread(target=model, args=(1,))
    thread.start()
    thread.join()
    back = ctypes.CFUNCTYPE(None)(call)
    back()
    functools.reduce(lambda a, b: call(), range(3))
    del model


cudart.cudaDeviceSynchronize()  # gpuprof's session begins
main()
with open(sys.argv[1], "w") as file:
    json.dump(seen, file)
