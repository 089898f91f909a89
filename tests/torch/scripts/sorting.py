# SPDX-License-Identifier: Apache-2.0
"""Steps that spend their time in sorting."""
import torch


def sort_rows(x, weight):
    return (x * weight).sort(dim=1).values[:, 0].mean()


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    weight = torch.nn.Parameter(torch.ones(600))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    x = torch.randn(600, 600)
    for _ in range(40):
        optimizer.zero_grad()
        loss = sort_rows(x, weight)
        loss.backward()
        optimizer.step()
    print(f"{loss.item():.6f}")
    raise SystemExit(3)


if __name__ == "__main__":
    main()
