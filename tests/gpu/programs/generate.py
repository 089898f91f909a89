# SPDX-License-Identifier: Apache-2.0
"""A generation loop as inference servers do it: the forward pass of one token is a CUDA graph, launched once for
each token. A step is one request of TOKENS tokens. --capture-at STEP: the step before which the graph is captured."""
import torch
from torch import nn

import stepper

TOKENS = 16


class Decoder(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.embed = nn.Embedding(1000, width)
        self.layers = nn.ModuleList(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(),
                                                  nn.Linear(4 * width, width)) for _ in range(layers))
        self.head = nn.Linear(width, 1000)

    def forward(self, token):
        x = self.embed(token)
        for layer in self.layers:
            x = x + layer(x)
        return self.head(x).argmax(dim=-1)


class Runner:
    """One token's forward pass, as a graph once capture() was called."""

    def __init__(self, device):
        self.model = Decoder(64, 2) if device == "cpu" else Decoder(512, 8)
        self.model = self.model.to(device).eval()
        self.token = torch.zeros(1, dtype=torch.long, device=device)
        self.graph = None

    def capture(self):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.token.copy_(self.model(self.token))
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.token.copy_(self.model(self.token))

    def next(self):
        if self.graph:
            self.graph.replay()
        else:
            self.token.copy_(self.model(self.token))


def main():
    parser = stepper.arguments(__doc__, 40)
    parser.add_argument("--capture-at", type=int, default=0)
    options = parser.parse_args()
    torch.manual_seed(1)
    runner = Runner(options.device)

    @torch.no_grad()
    def step(number):
        if number == options.capture_at and options.device == "cuda":
            runner.capture()
        runner.token.fill_(number % 1000)
        for _ in range(TOKENS):
            runner.next()
        return runner.token.item() if number + 1 == options.steps else None

    stepper.run(options, step)


if __name__ == "__main__":
    main()
