# SPDX-License-Identifier: Apache-2.0
"""30 steps of convolutions for which cuDNN is let try its algorithms: the first forward pass synchronizes many times.
Arguments: conv, residual or dcgan; amp; ddp."""
import os
import sys

import torch
from torch import nn

STEPS, BATCH = 30, 4


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.inner = nn.Sequential(nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU(),
                                   nn.Conv2d(channels, channels, 3, padding=1))

    def forward(self, x):
        return torch.relu(x + self.inner(x))


def convolutions(inputs, outputs, head):
    layers = []
    for before, after in zip([inputs, *outputs], outputs):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.ReLU()]
    return nn.Sequential(*layers, *head)


def classifier(residual):
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10)]
    return convolutions(3, (8, 16), [Residual(16), Residual(16), *head] if residual else head)


def train(model, optimizer, device, mixed):
    scaler = torch.amp.GradScaler("cuda", enabled=mixed)
    for _ in range(STEPS):
        images, labels = torch.randn(BATCH, 3, 16, 16, device=device), torch.zeros(BATCH, dtype=torch.long, device=device)
        optimizer.zero_grad()
        with torch.autocast("cuda", enabled=mixed):
            loss = nn.functional.cross_entropy(model(images), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


def play(device):
    """A step of the critic, then one of the generator."""
    critic = convolutions(3, (8, 16), [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 1)]).to(device)
    generator = convolutions(4, (16, 8), [nn.Conv2d(8, 3, 3, padding=1)]).to(device)
    critic_steps, generator_steps = (torch.optim.Adam(each.parameters(), lr=1e-3) for each in (critic, generator))
    for _ in range(STEPS):
        made = generator(torch.randn(BATCH, 4, 16, 16, device=device))
        critic_steps.zero_grad()
        (critic(made.detach()).mean() - critic(torch.randn(BATCH, 3, 16, 16, device=device)).mean()).backward()
        critic_steps.step()
        generator_steps.zero_grad()
        critic(made).mean().neg().backward()
        generator_steps.step()


def main():
    torch.backends.cudnn.benchmark = True
    local = int(os.environ.get("LOCAL_RANK", 0))
    device = torch.device("cuda", local)
    torch.cuda.set_device(device)
    if "dcgan" in sys.argv:
        play(device)
    else:
        model = classifier("residual" in sys.argv).to(device)
        if "ddp" in sys.argv:
            torch.distributed.init_process_group("nccl")
            model = nn.parallel.DistributedDataParallel(model)
        train(model, torch.optim.SGD(model.parameters(), lr=0.1), device, "amp" in sys.argv)
    torch.cuda.synchronize()
    if "ddp" in sys.argv:
        torch.distributed.destroy_process_group()
    os.write(1, f"{STEPS} steps\n".encode())  # in one piece


if __name__ == "__main__":
    main()
