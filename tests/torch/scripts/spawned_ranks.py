# SPDX-License-Identifier: Apache-2.0
"""DistributedDataParallel on two ranks by torch.multiprocessing.spawn: ranks are arguments, no variable names them."""
import sys

import torch
import torch.distributed

STEPS = 20


def train(rank, address):
    torch.cuda.set_device(rank)
    torch.distributed.init_process_group("nccl", init_method=address, rank=rank, world_size=2)
    torch.manual_seed(1)
    net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64).cuda())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(STEPS):
        optimizer.zero_grad()
        net(torch.randn(8, 64).cuda()).sum().backward()
        optimizer.step()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    torch.multiprocessing.spawn(train, args=(f"file://{sys.argv[1]}",), nprocs=2)
    print(STEPS, "steps")
