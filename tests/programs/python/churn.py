# SPDX-License-Identifier: Apache-2.0
"""Makes and ends frames, code objects, generators and threads as fast as it can for a second, and forks."""
import os
import pathlib
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import gpu


def deep(n):
    return deep(n - 1) if n else 0


def numbers(n):
    yield from range(n)


def once(i):
    names = {}
    exec(compile(f"def f(x):\n{chr(10) * (i % 50)}    return x + sum([x, {i}])\n", f"<generated {i}>", "exec"), names)
    names["f"](i)
    deep(i % 100)
    list(numbers(i % 20))


def train(end):
    i = 0
    while time.monotonic() < end:
        once(i)
        i += 1
        if i % 20 == 0:
            gpu.work()


begun = time.monotonic()
children = []
while time.monotonic() < begun + 2:
    workers = [threading.Thread(target=train, args=(time.monotonic() + 0.1,)) for _ in range(4)]
    for worker in workers:
        worker.start()
    train(time.monotonic() + 0.05)
    child = os.fork()
    if child == 0:
        for i in range(100):  # CUDA does not work in a forked process
            once(i)
        os._exit(0)
    children.append(child)
    for worker in workers:
        worker.join()
print("children", {os.waitpid(child, 0)[1] for child in children})
