# SPDX-License-Identifier: Apache-2.0
"""A model in which a look at the layers of a block calls another model, as a property of the program's may."""
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Identity()

    def forward(self, x):
        return self.inner(x)


def model_of(blocks):
    return nn.Sequential(*(Block() for _ in range(blocks)))


class Looked(Block):
    other = None
    calls = True

    @property
    def _modules(self):
        if Looked.calls and Looked.other is not None:
            Looked.calls = False  # once a step
            Looked.other(torch.ones(1))
        return self.__dict__["_modules"]

    @_modules.setter
    def _modules(self, layers):
        self.__dict__["_modules"] = layers


def main():
    weight = nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    for _ in range(6):
        Looked.other = model_of(200)
        model = nn.Sequential(Looked(), *(Block() for _ in range(300)))
        Looked.calls = True
        model(torch.ones(1))
        Looked.calls = True
        weight.grad = torch.zeros(1)
        optimizer.step()
    print("end")
    raise SystemExit(3)


main()
