# SPDX-License-Identifier: Apache-2.0
"""Makes tensors until there is no memory for more; prints what PyTorch says that it had given out and kept by then."""
import torch


def fill(kept):
    while True:
        kept.append(torch.empty(24 << 20, dtype=torch.uint8, device="cuda"))


def main():
    kept = [torch.empty(1000, device="cuda") for _ in range(10)]
    try:
        fill(kept)
    except torch.OutOfMemoryError:
        print(torch.cuda.memory_allocated(), torch.cuda.memory_reserved(), len(kept))


main()
