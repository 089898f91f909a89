# SPDX-License-Identifier: Apache-2.0
"""A training that waits for its data. Arguments: how workers are started, the number of workers, of steps, and of processes
beside them that load nothing. Prints what came out and ends with exit code 3."""
import ctypes
import multiprocessing
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))  # the look-alike torch; not there with -I
import torch

SECONDS = 0.03  # a sample takes


class Data:
    def __init__(self, length):
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        end = time.perf_counter() + SECONDS
        while time.perf_counter() < end: sum(range(2000))  # SLOW
        return self.load(index)

    def load(self, index):
        if index == 30:
            self.start_another()
        if os.environ.get("LOADER_COUNTS") and len(os.listdir("/proc/self/task")) > 2:
            return -1  # the main thread, and the one that sends batches
        with open(__file__, "rb") as file:
            return len(file.read()) * index

    def start_another(self):
        """A process of a worker's own is no worker. Nobody waits for it."""
        if os.fork() == 0:
            with open(__file__, "rb"):
                time.sleep(0.3)
            os._exit(0)


def idle(ready, done):
    """A process of the program's own that is no worker."""
    with open(__file__, "rb"):
        ready.set()
    done.wait(60)


def main():
    if os.environ.get("LOADER_LIBRARY"):
        ctypes.CDLL(os.environ["LOADER_LIBRARY"])  # libtorch_cpu's look-alike
    start, workers, steps, others = sys.argv[1], *map(int, sys.argv[2:5])
    context = multiprocessing.get_context(start)
    done = context.Event()
    beside = [(context.Event(), done) for _ in range(others)]
    processes = [context.Process(target=idle, args=events) for events in beside]
    for process, (ready, _) in zip(processes, beside):
        process.start()
        ready.wait(60)
    optimizer = torch.optim.SGD()
    if os.environ.get("LOADER_STEPS_BEFORE"):
        optimizer.step()  # there is a session when the workers are started
    if os.environ.get("LOADER_CLOSES"):
        os.closerange(100, 2000)
    loader = torch.utils.data.DataLoader(Data(steps), workers, start)
    total = 0
    for batch in loader:
        total += batch
        optimizer.step()
    done.set()
    codes = loader.kill() if os.environ.get("LOADER_END") == "kill" else loader.close()
    for process in processes:
        process.join(30)
    print(total, codes, [process.exitcode for process in processes])
    sys.exit(3)


if __name__ == "__main__":
    main()
