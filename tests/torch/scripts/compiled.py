# SPDX-License-Identifier: Apache-2.0
"""A model and an optimizer's step that are compiled, in a program that takes warnings for errors. Prints what was compiled, and
how often. Exit code 3."""
import sys
import warnings

import torch
from torch._dynamo.utils import counters


def main():
    warnings.simplefilter("error", UserWarning)
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    forward = torch.compile(model, backend="eager", fullgraph=True)
    step = torch.compile(lambda: optimizer.step(), backend="eager")
    for i in range(40):
        optimizer.zero_grad()
        forward(torch.randn(4, 8)).square().mean().backward()
        (step if i >= 36 else optimizer.step)()
    print(dict(counters["stats"]), sum(counters["graph_break"].values()))
    sys.exit(3)


main()
