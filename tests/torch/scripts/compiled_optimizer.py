# SPDX-License-Identifier: Apache-2.0
"""Forty steps of a training whose optimizer's step is compiled from the first one on."""
import torch

torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
step = torch.compile(optimizer.step, backend="eager")
for _ in range(40):
    optimizer.zero_grad()
    model(torch.randn(4, 8, device="cuda")).square().mean().backward()
    step()
