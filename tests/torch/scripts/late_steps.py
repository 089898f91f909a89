# SPDX-License-Identifier: Apache-2.0
"""Uses the GPU now and then for as many seconds as the argument says, as one that loads a model does, then trains for 40 steps."""
import sys
import time

import torch


def main():
    model = torch.nn.Linear(64, 64).cuda()
    for _ in range(int(sys.argv[1])):
        torch.ones(64, 64).cuda()
        time.sleep(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(40):
        optimizer.zero_grad()
        model(torch.ones(16, 64, device="cuda")).sum().backward()
        optimizer.step()
        time.sleep(0.02)
    torch.cuda.synchronize()


if __name__ == "__main__":
    main()
