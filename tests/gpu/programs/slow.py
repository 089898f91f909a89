# SPDX-License-Identifier: Apache-2.0
"""A GPT's training that is slow for one known reason: small (too little work for the GPU in a step), loader (batches are made by
the training thread), host (20 ms of Python a step), pageable (a copy of 268 MB from memory that is not pinned), fp32 (32-bit
products without Tensor cores)."""
import argparse
import time

import torch
from torch import nn

import models

REASONS = ["small", "loader", "host", "pageable", "fp32"]


class Tokens(torch.utils.data.Dataset):
    def __init__(self, count, length, slow):
        self.count, self.length, self.slow = count, length, slow

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if self.slow:
            time.sleep(0.004)
        return torch.randint(0, models.VOCABULARY, (self.length + 1,))


def busy(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        sum(range(1000))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reason", choices=REASONS)
    parser.add_argument("--steps", type=int, default=50)
    options = parser.parse_args()
    reason = options.reason
    torch.manual_seed(1)
    width, layers, batch, length = (64, 12, 4, 32) if reason == "small" else (768, 6, 16, 512)
    model = models.GPT(width, layers, length).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    data = Tokens(options.steps * batch, length, reason == "loader")
    loader = torch.utils.data.DataLoader(data, batch_size=batch, num_workers=0 if reason == "loader" else 2, pin_memory=True)
    large = torch.randn(64 << 20) if reason == "pageable" else None
    for tokens in loader:
        tokens = tokens.cuda(non_blocking=True)
        copied = large.cuda(non_blocking=True) if large is not None else None  # noqa: F841
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=reason != "fp32"):
            loss = nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, -2), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        torch.cuda.synchronize()
        if reason == "host":
            busy(0.02)
    print(reason, loss.item())


if __name__ == "__main__":
    main()
