# SPDX-License-Identifier: Apache-2.0
"""A generation loop as inference servers do it: one token after the other, from a GPT with a cache of keys and values. A
step is one request of TOKENS tokens. --capture-at STEP: before this step one token's forward pass is captured as a CUDA graph,
which is launched for each token from then on; -1: never."""
import torch

import models
import stepper

TOKENS = 16


class Runner:
    """One token's forward pass, as a graph once capture() was called."""

    def __init__(self, device):
        width, layers = (64, 2) if device == "cpu" else (512, 8)
        self.model = models.GPT(width, layers, 4 * TOKENS).to(device).eval()
        self.caches = self.model.caches(1)
        self.token = torch.zeros(1, 1, dtype=torch.long, device=device)
        self.place = torch.zeros(1, dtype=torch.long, device=device)
        self.graph = None

    def begin(self, token):
        self.token.fill_(token)
        self.place.zero_()

    def forward(self):
        self.token.copy_(self.model(self.token, self.caches, self.place).argmax(dim=-1))
        self.place.add_(1)

    def capture(self):
        self.begin(0)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.forward()
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.forward()

    def next(self):
        if self.graph:
            self.graph.replay()
        else:
            self.forward()


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
        runner.begin(number % models.VOCABULARY)
        for _ in range(TOKENS):
            runner.next()
        return runner.token.item() if number + 1 == options.steps else None

    stepper.run(options, step)


if __name__ == "__main__":
    main()
