# SPDX-License-Identifier: Apache-2.0
"""A PyTorch training loop: a residual convolution network, or a transformer encoder; half precision by autocast."""
import torch
from torch import nn

import stepper


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels), nn.ReLU(),
                                  nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels))

    def forward(self, x):
        return torch.relu(x + self.body(x))


def convolution(small):
    width, size, batch = (16, 32, 4) if small else (64, 128, 64)
    layers = [nn.Conv2d(3, width, 7, stride=2, padding=3), nn.BatchNorm2d(width), nn.ReLU()]
    for _ in range(3):
        layers += [Residual(width), Residual(width), nn.Conv2d(width, width * 2, 3, stride=2, padding=1)]
        width *= 2
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 100))
    return model, torch.randn(batch, 3, size, size), torch.randint(0, 100, (batch,))


class Encoder(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.embed = nn.Embedding(1000, width)
        layer = nn.TransformerEncoderLayer(width, width // 64, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, 100)

    def forward(self, tokens):
        return self.head(self.encoder(self.embed(tokens)).mean(dim=1))


def transformer(small):
    width, layers, batch, length = (64, 2, 2, 16) if small else (512, 6, 16, 256)
    return Encoder(width, layers), torch.randint(0, 1000, (batch, length)), torch.randint(0, 100, (batch,))


def main():
    parser = stepper.arguments(__doc__, 60)
    parser.add_argument("--model", choices=["conv", "transformer"], default="conv")
    options = parser.parse_args()
    torch.manual_seed(1)
    small = options.device == "cpu"
    model, data, target = (convolution if options.model == "conv" else transformer)(small)
    if options.device == "cuda":
        torch.backends.cudnn.benchmark = False  # its search would run other kernels in each process
        data, target = data.pin_memory(), target.pin_memory()
    model = model.to(options.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    kind = torch.bfloat16

    def step(number):
        batch = data.to(options.device, non_blocking=True)
        wanted = target.to(options.device, non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(options.device, dtype=kind):
            loss = nn.functional.cross_entropy(model(batch), wanted)
        loss.backward()
        optimizer.step()
        return loss.detach() if number + 1 == options.steps else None

    stepper.run(options, step)


if __name__ == "__main__":
    main()
