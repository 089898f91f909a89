# SPDX-License-Identifier: Apache-2.0
"""Training loops as programs write them: the name of one is the argument. Prints how many steps it has made."""
import sys
import threading

import torch
from torch.utils.checkpoint import checkpoint

ITERATIONS = 40


def net(inputs, outputs):
    return torch.nn.Sequential(torch.nn.Linear(inputs, 64), torch.nn.ReLU(), torch.nn.Linear(64, outputs)).cuda()


def update(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def adversaries():
    """Two optimizers by turns: one step an iteration."""
    maker, judge = net(16, 64), net(64, 1)
    of_maker, of_judge = torch.optim.Adam(maker.parameters()), torch.optim.Adam(judge.parameters())
    for _ in range(ITERATIONS):
        noise = torch.ones(8, 16, device="cuda")
        update(of_judge, judge(maker(noise).detach()).sum())
        update(of_maker, judge(maker(noise)).sum())
    return ITERATIONS


def policy():
    """Actions one by one, without gradients, then several passes over what was seen: each batch of it is a step."""
    actor, critic = net(8, 4), net(8, 1)
    parameters = [*actor.parameters(), *critic.parameters()]
    optimizer, steps = torch.optim.Adam(parameters), 0
    for _ in range(4):
        seen = []
        for _ in range(16):
            with torch.no_grad():
                actor(torch.ones(1, 8).cuda()).cpu()
            seen.append(torch.ones(8))
        for _ in range(4):
            for batch in torch.stack(seen).split(8):
                batch = batch.cuda()
                optimizer.zero_grad()
                (actor(batch).sum() + critic(batch).sum()).backward()
                torch.nn.utils.clip_grad_norm_(parameters, 1.0)
                optimizer.step()
                steps += 1
    return steps


def recomputed():
    """Activations that the backward pass computes again, in both of PyTorch's ways, on its thread."""
    blocks = torch.nn.ModuleList(net(64, 64) for _ in range(4))
    optimizer = torch.optim.AdamW(blocks.parameters())
    for i in range(ITERATIONS):
        x = torch.ones(8, 64, device="cuda", requires_grad=True)
        for block in blocks:
            x = checkpoint(block, x, use_reentrant=i % 2 == 0)
        update(optimizer, x.sum())
    return ITERATIONS


def closures():
    """An optimizer that computes the loss several times in a step."""
    model = net(8, 8)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4)

    def loss():
        optimizer.zero_grad()
        value = model(torch.ones(4, 8, device="cuda")).sum()
        value.backward()
        return value

    for _ in range(ITERATIONS):
        optimizer.step(loss)
    return ITERATIONS


def other_thread():
    """The main thread only waits."""
    def train():
        model = net(64, 8)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(ITERATIONS):
            update(optimizer, model(torch.ones(16, 64, device="cuda")).sum())

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    return ITERATIONS


if __name__ == "__main__":
    made = globals()[sys.argv[1]]()
    torch.cuda.synchronize()
    print(made, "steps")
