# SPDX-License-Identifier: Apache-2.0
"""Training as public examples do it, small: resnet, nanogpt, dcgan, mnist, accumulation (in automatic mixed precision),
compiled, lstm, lr_finder. 12 steps on a GPU."""
import copy
import math
import sys

import torch
from torch import nn
from torch.nn import functional

STEPS, DEVICE = 12, "cuda"


class Basic(nn.Module):
    """A block of ResNet-18."""

    def __init__(self, before, after, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after)
        self.conv2, self.bn2 = nn.Conv2d(after, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after)
        self.shortcut = nn.Sequential()
        if stride != 1 or before != after:
            self.shortcut = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, x):
        inner = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(inner + self.shortcut(x))


def resnet18():
    widths, blocks, before = (16, 32, 64, 128), [], 16
    for width in widths:
        blocks += [Basic(before, width, 1 if width == 16 else 2), Basic(width, width, 1)]
        before = width
    return nn.Sequential(nn.Conv2d(3, 16, 7, 2, 3, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(3, 2, 1), *blocks,
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.c_attn, self.c_proj, self.heads = nn.Linear(width, 3 * width), nn.Linear(width, width), heads

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in self.c_attn(x).split(width, 2))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1, self.ln_2, self.attn = nn.LayerNorm(width), nn.LayerNorm(width), Attention(width, heads)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, vocabulary=128, length=32, width=64, layers=3, heads=4):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.h, self.ln_f = nn.ModuleList(Block(width, heads) for _ in range(layers)), nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


def images(batch, channels, size):
    return torch.randn(batch, channels, size, size, device=DEVICE), torch.zeros(batch, dtype=torch.long, device=DEVICE)


def classify(model, inputs, targets, optimizer):
    optimizer.zero_grad(set_to_none=True)
    functional.cross_entropy(model(inputs).flatten(0, -2), targets.flatten()).backward()
    optimizer.step()


def resnet():
    model = resnet18().to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=4)
    for _ in range(STEPS):
        classify(model, *images(4, 3, 64), optimizer)
        schedule.step()


def nanogpt(wrap=lambda model: model):
    model = GPT().to(DEVICE)
    decayed = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}], lr=6e-4)
    called = wrap(model)
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = 6e-4 * 0.5 * (1 + math.cos(math.pi * step / STEPS))
        tokens = torch.zeros(4, 33, dtype=torch.long).pin_memory().to(DEVICE, non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        loss = functional.cross_entropy(called(tokens[:, :-1]).flatten(0, -2), tokens[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


def compiled():
    nanogpt(torch.compile)


def dcgan():
    critic = nn.Sequential(nn.Conv2d(3, 16, 4, 2, 1, bias=False), nn.LeakyReLU(0.2), nn.Conv2d(16, 32, 4, 2, 1, bias=False),
                           nn.BatchNorm2d(32), nn.LeakyReLU(0.2), nn.Conv2d(32, 1, 4), nn.Sigmoid()).to(DEVICE)
    generator = nn.Sequential(nn.ConvTranspose2d(16, 32, 4, bias=False), nn.BatchNorm2d(32), nn.ReLU(),
                              nn.ConvTranspose2d(32, 16, 4, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
                              nn.ConvTranspose2d(16, 3, 4, 2, 1, bias=False), nn.Tanh()).to(DEVICE)
    critic_steps, generator_steps = (torch.optim.Adam(each.parameters(), lr=2e-4, betas=(0.5, 0.999)) for each in (critic, generator))
    ones, zeros = torch.ones(4, device=DEVICE), torch.zeros(4, device=DEVICE)

    def loss(images, wanted):
        return functional.binary_cross_entropy_with_logits(critic(images).flatten(), wanted)
    for _ in range(STEPS):
        made = generator(torch.randn(4, 16, 1, 1, device=DEVICE))
        critic_steps.zero_grad()
        loss(images(4, 3, 16)[0], ones).backward()
        loss(made.detach(), zeros).backward()
        critic_steps.step()
        generator_steps.zero_grad()
        loss(made, ones).backward()
        generator_steps.step()


def mnist():
    model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Conv2d(8, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.25), nn.Flatten(),
                          nn.Linear(16 * 144, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 10), nn.LogSoftmax(1)).to(DEVICE)
    optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
    data = torch.utils.data.TensorDataset(torch.randn(4 * STEPS, 1, 28, 28), torch.zeros(4 * STEPS, dtype=torch.long))
    for inputs, targets in torch.utils.data.DataLoader(data, batch_size=4, shuffle=True, num_workers=1, pin_memory=True):
        inputs, targets = inputs.to(DEVICE), targets.to(DEVICE)
        optimizer.zero_grad()
        functional.nll_loss(model(inputs), targets).backward()
        optimizer.step()


def accumulation():
    model = resnet18().to(DEVICE)
    optimizer, scaler = torch.optim.AdamW(model.parameters()), torch.amp.GradScaler(DEVICE)
    for _ in range(STEPS):
        optimizer.zero_grad(set_to_none=True)
        for _ in range(3):
            inputs, targets = images(2, 3, 32)
            with torch.autocast(DEVICE):
                loss = functional.cross_entropy(model(inputs), targets) / 3
            scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.lstm, self.head = nn.Embedding(50, 16), nn.LSTM(16, 32, 2, batch_first=True), nn.Linear(32, 10)

    def forward(self, tokens):
        return self.head(self.lstm(self.embedding(tokens))[0])


def lstm():
    torch.backends.cudnn.enabled = False  # PyTorch's own cells
    model = Tagger().to(DEVICE)
    optimizer = torch.optim.RMSprop(model.parameters())
    tokens, tags = (torch.zeros(4, 8, dtype=torch.long, device=DEVICE) for _ in range(2))
    for _ in range(STEPS):
        classify(model, tokens, tags, optimizer)


def lr_finder():
    """Rates from small to large, then back to the state of before."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 256, 32), nn.ReLU(), nn.Linear(32, 10)).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-6)
    before = copy.deepcopy(model.state_dict()), copy.deepcopy(optimizer.state_dict())
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 10.0 ** (step / 2))
    losses = []
    for _ in range(STEPS):
        inputs, targets = images(4, 3, 16)
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    model.load_state_dict(before[0])
    optimizer.load_state_dict(before[1])


if __name__ == "__main__":
    torch.manual_seed(1)
    torch.set_num_threads(1)
    {each.__name__: each for each in (resnet, nanogpt, compiled, dcgan, mnist, accumulation, lstm, lr_finder)}[sys.argv[1]]()
    torch.cuda.synchronize()
    print("trained")
