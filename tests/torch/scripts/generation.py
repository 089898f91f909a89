# SPDX-License-Identifier: Apache-2.0
"""A generation loop without any mark: 8 requests and 184 tokens, of a small GPT with a prompt and a token at a time.
usage: generation.py [grad] [pause SECONDS]"""
import contextlib
import sys
import time

import torch
from torch import nn

REQUESTS, TOKENS = 8, 23  # of each


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.into, self.out = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.out(torch.nn.functional.gelu(self.into(self.norm(x))))


class Net(nn.Module):
    def __init__(self, words=64, width=32, depth=3):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.head = nn.Linear(width, words)

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def main():
    pause = float(sys.argv[sys.argv.index("pause") + 1]) if "pause" in sys.argv else 0
    model = Net().cuda().eval()
    calls = 0
    with contextlib.nullcontext() if "grad" in sys.argv else torch.no_grad():
        for _ in range(REQUESTS):
            tokens = torch.zeros(1, 16, dtype=torch.long, device="cuda")
            for _ in range(TOKENS):
                logits = model(tokens)
                tokens = logits[:, -1:].argmax(-1)
                calls += 1
                time.sleep(pause)
    torch.cuda.synchronize()
    print(calls, "tokens")


main()
