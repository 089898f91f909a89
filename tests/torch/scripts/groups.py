# SPDX-License-Identifier: Apache-2.0
"""One of four ranks that train together over NCCL, each on a GPU of its own. Arguments: ddp, fsdp or mesh (2 x 2: data
and tensor parallel); a folder, where each rank leaves what PyTorch says of its process groups."""
import json
import os
import pathlib
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

STEPS = 12


def make(way, device):
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8)).to(device)
    if way == "ddp":
        return nn.parallel.DistributedDataParallel(model)
    if way == "fsdp":
        for layer in model:
            if isinstance(layer, nn.Linear):
                fully_shard(layer)
        return fully_shard(model)
    mesh = init_device_mesh("cuda", (2, 2), mesh_dim_names=("dp", "tp"))
    model = parallelize_module(model, mesh["tp"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
    return fully_shard(model, mesh=mesh["dp"])


def main():
    way, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    torch.set_num_threads(1)
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl")
    model = make(way, device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(STEPS):
        optimizer.zero_grad()
        model(torch.ones(4, 8, device=device)).sum().backward()
        optimizer.step()
    dist.all_reduce(torch.ones(4, device=device), group=dist.new_group(use_local_synchronization=False))
    groups = [[group.group_name, group.group_desc, dist.get_process_group_ranks(group)]
              for group in dist.distributed_c10d._world.pg_names]
    (folder / f"{dist.get_rank()}.json").write_text(json.dumps(groups))
    torch.cuda.synchronize()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
