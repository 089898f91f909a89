# SPDX-License-Identifier: Apache-2.0
"""One of two ranks that train together over gloo."""
import os

import torch
from torch import nn


def main():
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    torch.manual_seed(1)
    model = nn.parallel.DistributedDataParallel(nn.Linear(16, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(40):
        optimizer.zero_grad()
        model(torch.ones(8, 16)).sum().backward()
        optimizer.step()
    torch.distributed.destroy_process_group()
    # One write, so that the lines of two ranks on one pipe cannot mix.
    os.write(1, f"rank{os.environ['RANK']}\n".encode())


if __name__ == "__main__":
    main()
