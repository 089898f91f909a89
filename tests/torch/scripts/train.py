# SPDX-License-Identifier: Apache-2.0
"""A training script that knows nothing of profilers. Arguments: mlp, conv or transformer; cuda for a GPU; amp for
automatic mixed precision. Exit code 3."""
import contextlib
import sys
import time

import torch
from torch import nn

STEPS = 40


class Block(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.norm = nn.LayerNorm(width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm(x), self.norm(x), self.norm(x), need_weights=False)[0]
        return (x + self.feed(x)).mean(dim=1)


MODELS = {
    "mlp": (lambda: nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 4)), (32,)),
    "conv": (lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4)), (3, 12, 12)),
    "transformer": (lambda: nn.Sequential(Block(), nn.Linear(32, 4)), (10, 32)),
}


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    make, shape = MODELS[sys.argv[1]]
    device = "cuda" if "cuda" in sys.argv else "cpu"
    mixed = torch.autocast(device, torch.bfloat16) if "amp" in sys.argv else contextlib.nullcontext()
    model = make().to(device)
    data = torch.utils.data.TensorDataset(torch.randn(STEPS * 4, *shape), torch.randint(0, 4, (STEPS * 4,)))
    loader = torch.utils.data.DataLoader(data, batch_size=4, num_workers=2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loss_of = nn.CrossEntropyLoss()
    for inputs, targets in loader:
        inputs, targets = inputs.to(device), targets.to(device)
        optimizer.zero_grad()
        with mixed:
            loss = loss_of(model(inputs), targets)
        loss.backward()
        optimizer.step()
    value = loss.item()  # on a simulated GPU it means nothing
    print(sys.argv[1], f"{value:.6f}" if device == "cpu" else loss.shape)
    # A thread of autograd's that still puts the last backward away when Python ends takes the process down: it wants
    # the GIL, CPython to 3.13 ends it for that, and PyTorch's functions let nothing unwind them (std::terminate).
    time.sleep(0.2)
    sys.exit(3)


if __name__ == "__main__":
    main()
