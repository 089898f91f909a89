# SPDX-License-Identifier: Apache-2.0
"""Steps with tensors that have no sizes in numbers: nested ones, and those whose sizes torch.compile keeps as symbols while it
looks at a function. Exit code 3."""
import sys
import time

import torch

STEPS = 40


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    weight = torch.nn.Parameter(torch.ones(4, 3))
    optimizer = torch.optim.SGD([weight], lr=0.001)

    @torch.compile(dynamic=True, backend="eager")
    def weighed(x):
        return (x @ weight).relu().sum() * x.size(0)

    for number in range(STEPS):
        pieces = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)])
        padded = (pieces * 2).to_padded_tensor(0)
        if number % 4 == 3:
            torch.compiler.reset()
        loss = weighed(torch.ones(number + 2, 4)) + padded.sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print(f"{loss.item():.4f}")
    time.sleep(0.2)  # as in train.py
    sys.exit(3)


main()
