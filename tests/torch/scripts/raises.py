# SPDX-License-Identifier: Apache-2.0
"""A module that raises: first caught, then not."""
import torch

RAISES_AT = 30


class Raises(torch.nn.Module):
    def forward(self, x):
        raise ValueError("as it should")


def main():
    model = torch.nn.Linear(8, 2)
    bad = torch.nn.Sequential(torch.nn.Linear(8, 8), Raises())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(40):
        optimizer.zero_grad()
        model(torch.ones(4, 8)).square().mean().backward()
        optimizer.step()
        if step == RAISES_AT:
            try:
                bad(torch.ones(4, 8))
            except ValueError:
                print("caught", flush=True)
        if step == RAISES_AT + 2:
            bad(torch.ones(4, 8))


main()
