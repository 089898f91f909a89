# SPDX-License-Identifier: Apache-2.0
"""Trains six models whose layers lie in containers, wrappers and at two places at once. Writes what PyTorch calls each
layer that is called into the file given: {"GPT.blocks.0.attention": "Attention", ...}."""
import json
import os
import sys

import torch
import torch.distributed
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

SIZE = 16


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.projections = nn.ModuleDict({name: nn.Linear(SIZE, SIZE) for name in ("query", "key", "value")})

    def forward(self, x):
        query, key, value = (layer(x) for layer in self.projections.values())
        return torch.softmax(query @ key.T, -1) @ value


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = Attention()
        self.feed = nn.Sequential(nn.Linear(SIZE, 2 * SIZE), nn.GELU(), nn.Linear(2 * SIZE, SIZE))

    def forward(self, x):
        x = x + self.attention(x)
        return x + self.feed(x)


class GPT(nn.Module):
    """Blocks in a list."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        self.head = nn.Linear(SIZE, SIZE)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class Nested(GPT):
    """Lists in lists; a layer that is two layers; one that the list's owner hands on."""

    def __init__(self):
        super().__init__()
        self.stages = nn.ModuleList(nn.ModuleList(nn.Linear(SIZE, SIZE) for _ in range(2)) for _ in range(2))
        self.tied = self.stages[0][0]

    def forward(self, x):
        for stage in self.stages:
            for layer in stage:
                x = layer(x)
        return super().forward(self.tied(x))


class Checkpointed(GPT):
    """Each block's forward pass runs again in the backward pass."""

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return self.head(x)


class Wrapped(GPT):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(checkpoint_wrapper(block) for block in self.blocks)


def models():
    sharded = Nested()
    for block in sharded.blocks:
        fully_shard(block)
    fully_shard(sharded)
    return [GPT(), Nested(), Checkpointed(), Wrapped(), DistributedDataParallel(GPT()), sharded]


def names_of(model):
    containers = (nn.ModuleList, nn.ModuleDict)
    root = type(model).__name__
    return {f"{root}.{path}" if path else root: type(layer).__name__ for path, layer in model.named_modules()
            if not isinstance(layer, containers)}


def main(path, steps):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0", RANK="0", WORLD_SIZE="1")
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    torch.manual_seed(1)
    made = models()
    expected = {}
    for model in made:
        expected.update(names_of(model))
    with open(path, "w", encoding="utf-8") as out:
        json.dump(expected, out)
    optimizer = torch.optim.SGD([p for model in made for p in model.parameters()], lr=1e-3, foreach=False)
    for _ in range(steps):
        loss = 0
        for model in made:
            loss = loss + model(torch.randn(8, SIZE)).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.distributed.destroy_process_group()


main(sys.argv[1], int(sys.argv[2]))
