# SPDX-License-Identifier: Apache-2.0
"""Steps with 300 ranges each that begin on this thread and end on another, as those of asynchronous calls do."""
import concurrent.futures
import sys

import torch
from torch import nn


def main():
    torch.set_num_threads(1)
    model = nn.Linear(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with concurrent.futures.ThreadPoolExecutor(1) as other:
        for _ in range(8):
            optimizer.zero_grad()
            for _ in range(300):
                request = torch.ops.profiler._record_function_enter_new("request")
                other.submit(torch.ops.profiler._record_function_exit, request).result()
            model(torch.ones(8, 16)).sum().backward()
            optimizer.step()


if __name__ == "__main__":
    main()
    sys.exit(3)
