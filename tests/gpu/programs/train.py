# SPDX-License-Identifier: Apache-2.0
"""A PyTorch training loop, ResNet-50 or a GPT; half precision by autocast. As it is, sharded by FSDP on one rank,
compiled, or replayed as a CUDA graph."""
import tempfile

import torch
from torch import nn

import models
import stepper


def resnet50(small):
    batch, size = (2, 64) if small else (64, 224)
    return models.resnet50(), torch.randn(batch, 3, size, size), torch.randint(0, 1000, (batch,))


def gpt(small):
    width, layers, batch, length = (64, 2, 2, 16) if small else (768, 6, 16, 512)
    tokens = torch.randint(0, models.VOCABULARY, (batch, length + 1))
    return models.GPT(width, layers, length), tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()


def sharded(model, device):
    """FSDP with a rank of its own: nothing is sent, all of FSDP's gathering, casting and freeing is there."""
    from torch.distributed.fsdp import fully_shard
    store = torch.distributed.FileStore(tempfile.NamedTemporaryFile().name, 1)
    torch.distributed.init_process_group("nccl" if device == "cuda" else "gloo", store=store, rank=0, world_size=1)
    mesh = torch.distributed.device_mesh.init_device_mesh(device, (1,))
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def captured(step):
    """`step` as a graph, after the warm-up that capturing wants."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step()

    def replay():
        graph.replay()
        return loss

    return replay


class Training:
    def __init__(self, options):
        device, small = options.device, options.device == "cpu"
        self.model, data, target = (resnet50 if options.model == "resnet50" else gpt)(small)
        self.inputs = [each.pin_memory() if device == "cuda" else each for each in (data, target)]
        self.device = device
        self.model = self.model.to(device)
        if options.fsdp:
            self.model = sharded(self.model, device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, capturable=options.graph)
        if options.compile:
            self.model = torch.compile(self.model, mode=options.compile)
        self.kept = [each.to(device) for each in self.inputs] if options.graph else None
        self.replay = captured(lambda: self.update(*self.kept)) if options.graph else None

    def update(self, data, target):
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast(self.device, dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(self.model(data).flatten(0, -2), target.flatten())
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def step(self):
        if self.replay:
            for kept, given in zip(self.kept, self.inputs):
                kept.copy_(given, non_blocking=True)
            return self.replay()
        return self.update(*(each.to(self.device, non_blocking=True) for each in self.inputs))


def main():
    parser = stepper.arguments(__doc__, 60)
    parser.add_argument("--model", choices=["resnet50", "gpt"], default="resnet50")
    parser.add_argument("--fsdp", action="store_true", help="the GPT alone")
    parser.add_argument("--compile", metavar="MODE", help="torch.compile's mode: default, reduce-overhead")
    parser.add_argument("--graph", action="store_true", help="the whole step is one CUDA graph, captured before step 0")
    options = parser.parse_args()
    torch.manual_seed(1)
    torch.backends.cudnn.benchmark = False  # its search would run other kernels in each process
    training = Training(options)

    def step(number):
        loss = training.step()
        return loss.item() if number + 1 == options.steps else None

    stepper.run(options, step)
    if options.fsdp:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
