# SPDX-License-Identifier: Apache-2.0
"""An optimizer whose step() calls that of its base class. Exit code 3."""
import sys

import torch


class Own(torch.optim.SGD):
    def step(self, closure=None):
        return super().step(closure)


def main():
    torch.manual_seed(1)
    model = torch.nn.Linear(8, 2)
    torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer = Own(model.parameters(), lr=0.1)
    for _ in range(40):
        optimizer.zero_grad()
        loss = model(torch.randn(4, 8)).square().mean()
        loss.backward()
        optimizer.step()
    print(f"{loss.item():.6f}")
    sys.exit(3)


main()
