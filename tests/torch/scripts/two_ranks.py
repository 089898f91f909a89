# SPDX-License-Identifier: Apache-2.0
"""One of two ranks that train together, over gloo, or with the argument nccl each on a GPU of its own."""
import os
import sys

import torch
from torch import nn


def main():
    torch.set_num_threads(1)
    backend = "nccl" if "nccl" in sys.argv else "gloo"
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if backend == "nccl" else torch.device("cpu")
    if backend == "nccl":
        torch.cuda.set_device(device)
    torch.distributed.init_process_group(backend)
    torch.manual_seed(1)
    model = nn.parallel.DistributedDataParallel(nn.Linear(16, 4).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(40):
        optimizer.zero_grad()
        model(torch.ones(8, 16, device=device)).sum().backward()
        optimizer.step()
    torch.distributed.destroy_process_group()
    # One write, so that the lines of two ranks on one pipe cannot mix.
    os.write(1, f"rank{os.environ['RANK']}\n".encode())


if __name__ == "__main__":
    main()
