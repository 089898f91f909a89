# SPDX-License-Identifier: Apache-2.0
"""A training script for one GPU that knows nothing of profilers. Arguments: mlp, conv or transformer, and amp for
automatic mixed precision. Exit code 3."""
import contextlib
import sys

import torch
from torch import nn

from train import MODELS, STEPS


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    make, shape = MODELS[sys.argv[1]]
    mixed = sys.argv[2:] == ["amp"]
    model = make().cuda()
    data = torch.utils.data.TensorDataset(torch.randn(STEPS * 4, *shape), torch.randint(0, 4, (STEPS * 4,)))
    loader = torch.utils.data.DataLoader(data, batch_size=4, num_workers=2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loss_of = nn.CrossEntropyLoss()
    for inputs, targets in loader:
        inputs, targets = inputs.cuda(non_blocking=True), targets.cuda(non_blocking=True)
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16) if mixed else contextlib.nullcontext():
            loss = loss_of(model(inputs), targets)
        loss.backward()
        optimizer.step()
    torch.cuda.synchronize()
    loss.item()  # a copy to the host, whose value means nothing on a simulated GPU
    print(sys.argv[1], tuple(loss.shape), len(loader))
    sys.exit(3)


if __name__ == "__main__":
    main()
