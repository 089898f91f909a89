# SPDX-License-Identifier: Apache-2.0
"""In each step allocates a buffer of 1 MiB (malloc), keeps 256 KiB, and makes a hundred thousand small objects,
whose memory the interpreter maps."""
import gpu

kept = []


def make_buffer():
    return bytearray(1 << 20)


def keep():
    kept.append(bytearray(256 << 10))


def make_objects():
    return [[i] for i in range(100_000)]


for step in range(16):
    make_buffer()
    keep()
    make_objects()
    gpu.work()
print("done", len(kept))
