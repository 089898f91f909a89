# SPDX-License-Identifier: Apache-2.0
"""30 eager steps of a small model on a GPU that has little to do. Arguments: gpt or cnn; what each step does beside it:
nothing, python (5 ms of it), file (a write that takes some ms), lock (5 ms until another thread gives it), item."""
import os
import sys
import tempfile
import threading
import time

import torch
from torch import nn

WAIT_S = 0.005


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.mix = nn.Linear(width, 3 * width)

    def forward(self, x):
        q, k, v = self.mix(self.norm(x)).chunk(3, dim=-1)
        x = x + torch.softmax(q @ k.transpose(1, 2), dim=-1) @ v
        return x + self.down(nn.functional.gelu(self.up(x)))


def gpt():
    return nn.Sequential(nn.Linear(32, 32), *[Block(32) for _ in range(4)]), torch.randn(4, 16, 32)


def cnn():
    layers = [layer for _ in range(8) for layer in (nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU())]
    return nn.Sequential(*layers), torch.randn(2, 4, 16, 16)


def plain_python():
    end, count = time.perf_counter() + WAIT_S, 0
    while time.perf_counter() < end:
        count += 1
    return count


def write_file(file, megabyte=b"x" * (1 << 20)):
    end = time.perf_counter() + WAIT_S
    while time.perf_counter() < end:
        os.pwrite(file.fileno(), megabyte, 0)
        os.fsync(file.fileno())


def wait_for_lock(lock):
    lock.acquire()
    threading.Timer(WAIT_S, lock.release).start()
    lock.acquire()
    lock.release()


def main():
    torch.set_num_threads(1)
    what = sys.argv[2]
    model, x = (gpt if sys.argv[1] == "gpt" else cnn)()
    model, x = model.cuda(), x.cuda()
    optimizer = torch.optim.AdamW(model.parameters(), fused=False, foreach=False)
    lock = threading.Lock()
    with tempfile.TemporaryFile() as file:
        for _ in range(30):
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            if what == "python":
                plain_python()
            elif what == "file":
                write_file(file)
            elif what == "lock":
                wait_for_lock(lock)
            elif what == "item":
                loss.item()


main()
