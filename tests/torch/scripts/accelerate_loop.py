# SPDX-License-Identifier: Apache-2.0
"""A loop with Accelerate: gradients of two batches in each step, a schedule, clipped gradients."""
import accelerate
import torch

torch.manual_seed(1)
accelerator = accelerate.Accelerator(gradient_accumulation_steps=2)
net = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
optimizer = torch.optim.AdamW(net.parameters())
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 5)
data = torch.utils.data.TensorDataset(torch.randn(160, 32), torch.randn(160, 1))
loader = torch.utils.data.DataLoader(data, batch_size=8)
net, optimizer, loader, schedule = accelerator.prepare(net, optimizer, loader, schedule)
steps = 0
for _ in range(2):
    for inputs, targets in loader:
        with accelerator.accumulate(net):
            accelerator.backward(torch.nn.functional.mse_loss(net(inputs), targets))
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(net.parameters(), 1.0)
                steps += 1
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
assert accelerator.device.type == "cuda"
print(steps, "steps")
