# SPDX-License-Identifier: Apache-2.0
"""Trains for 20 steps with what else a GPU program does: batches copied on a side stream from pinned memory, tensors
that two streams use, a part replayed as a CUDA graph, gradients accumulated over two passes."""
import time

import torch

STEPS = 20


def captured(inputs, weight):
    """A graph of relu(inputs @ weight), after the warm-up that capturing wants."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        (inputs @ weight).relu()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        outputs = (inputs @ weight).relu()
    return graph, outputs


def main():
    weight = torch.ones(64, 64, device="cuda", requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    frozen = torch.ones(64, 64, device="cuda")
    graph, features = captured(torch.ones(64, 64, device="cuda"), frozen)
    copies = torch.cuda.Stream()
    host = torch.ones(64, 64).pin_memory()
    for _ in range(STEPS):
        optimizer.zero_grad()
        for _ in range(2):
            with torch.cuda.stream(copies):
                batch = host.to("cuda", non_blocking=True)
                ready = copies.record_event()
            ready.wait()
            batch.record_stream(torch.cuda.current_stream())
            graph.replay()
            ((batch + features) @ weight).sum().backward()
        optimizer.step()
    torch.cuda.synchronize()
    print("trained")
    # A thread of autograd's that still puts the last backward away when Python ends takes the process down: it wants
    # the GIL, CPython to 3.13 ends it for that, and PyTorch's functions let nothing unwind them (std::terminate).
    time.sleep(0.2)


if __name__ == "__main__":
    main()
