# SPDX-License-Identifier: Apache-2.0
"""A training that waits for its data, for one reason. Arguments: the reason, a folder on a disk. Exit code 3."""
import mmap
import os
import sys
import time

import torch

STEPS, SECONDS = 40, 0.03  # a batch takes
FILE_MB, READ_MB = 64, 16  # large reads: on a busy machine each end of one is a wait for a processor, too


def compute():
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        sum(range(1000))


class Data(torch.utils.data.Dataset):
    def __init__(self, reason, folder, length):
        self.reason, self.path, self.length = reason, os.path.join(folder, "data"), length
        self.block = None

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        {"disk": self.read, "elsewhere": lambda: time.sleep(SECONDS), "starting": lambda: None}.get(self.reason, compute)()
        return torch.full((8,), float(index % 5))

    def read(self):
        """Past the page cache."""
        self.block = self.block or mmap.mmap(-1, READ_MB << 20)
        file = os.open(self.path, os.O_RDONLY | os.O_DIRECT)
        end = time.perf_counter() + SECONDS
        while time.perf_counter() < end:
            os.preadv(file, [self.block], time.perf_counter_ns() % (FILE_MB - READ_MB) << 20)
        os.close(file)


def start_slowly(worker):
    time.sleep(0.2)


def main():
    reason, folder = sys.argv[1:]
    torch.manual_seed(1)
    torch.set_num_threads(1)
    if reason == "disk":
        with open(os.path.join(folder, "data"), "wb") as file:
            file.write(os.urandom(1 << 20) * FILE_MB)
            os.fsync(file.fileno())
    epochs = 20 if reason == "starting" else 1
    cpus = len(os.sched_getaffinity(0))
    workers = {"no_workers": 0, "few_workers": 1, "cpu": cpus}.get(reason, 2)
    loader = torch.utils.data.DataLoader(Data(reason, folder, STEPS // epochs), num_workers=workers,
                                         worker_init_fn=start_slowly if reason == "starting" else None)
    model = torch.nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(epochs):
        for batch in loader:
            optimizer.zero_grad()
            loss = model(batch).square().mean()
            loss.backward()
            optimizer.step()
    print(reason, f"{loss.item():.6f}")
    sys.exit(3)


if __name__ == "__main__":  # workers that are not forked import this file
    main()
