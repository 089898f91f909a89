# SPDX-License-Identifier: Apache-2.0
"""The nets of the PyTorch programs: ResNet-50, and a GPT that trains and generates."""
import torch
from torch import nn
from torch.nn import functional

VOCABULARY = 1000


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolutions around a shortcut, which is projected where the shape changes."""

    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = 4 * width
        self.body = nn.Sequential(
            nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride=stride, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs))
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        return torch.relu(self.body(x) + self.shortcut(x))


def resnet50(classes=1000):
    layers = [nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
              nn.MaxPool2d(3, stride=2, padding=1)]
    inputs = 64
    for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for number in range(blocks):
            layers.append(Bottleneck(inputs, width, 2 if number == 0 and width > 64 else 1))
            inputs = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


class Attention(nn.Module):
    """Causal self-attention. With a cache, (keys, values) of all positions: only the tokens at `places` are new."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.project, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x, cache=None, places=None):
        batch, length, width = x.shape
        query, key, value = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in self.project(x).split(width, dim=2))
        if cache is None:
            found = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        else:
            keys, values = cache[0].index_copy_(2, places, key), cache[1].index_copy_(2, places, value)
            seen = torch.arange(keys.shape[2], device=x.device) <= places[:, None]
            found = functional.scaled_dot_product_attention(query, keys, values, attn_mask=seen)
        return self.out(found.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention, self.feed = Attention(width, heads), nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.before_attention, self.before_feed = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x, cache=None, places=None):
        x = x + self.attention(self.before_attention(x), cache, places)
        return x + self.feed(self.before_feed(x))


class GPT(nn.Module):
    def __init__(self, width, layers, length):
        super().__init__()
        self.heads = max(1, width // 64)
        self.tokens, self.positions = nn.Embedding(VOCABULARY, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, self.heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, VOCABULARY, bias=False)

    def forward(self, tokens, caches=None, places=None):
        if places is None:
            places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.tokens(tokens) + self.positions(places)
        for number, block in enumerate(self.blocks):
            x = block(x, caches[number] if caches else None, places)
        return self.head(self.norm(x))

    def caches(self, batch):
        """Keys and values of each block for all positions."""
        length, width = self.positions.weight.shape
        shape = (batch, self.heads, length, width // self.heads)
        return [(self.head.weight.new_zeros(shape), self.head.weight.new_zeros(shape)) for _ in self.blocks]
