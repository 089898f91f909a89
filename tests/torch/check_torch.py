# SPDX-License-Identifier: Apache-2.0
"""A real PyTorch where there is no GPU: a training loop with DataLoader workers prints the same loss, ends the
same way under the preloaded library, and has its window of optimizer steps.

usage: check_torch.py LIBRARY"""
import os
import pathlib
import subprocess
import sys
import tempfile

PROGRAM = """
import torch
torch.manual_seed(1)
data = torch.utils.data.TensorDataset(torch.randn(256, 32))
loader = torch.utils.data.DataLoader(data, batch_size=32, num_workers=2)
model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 32))
optimizer = torch.optim.AdamW(model.parameters())
for epoch in range(4):
    for (batch,) in loader:
        loss = (model(batch) - batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(f"{loss.item():.6f}", torch.cuda.is_available())
raise SystemExit(7)
"""


def run(environment, folder):
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, cwd=folder, capture_output=True, text=True)
    return done.returncode, done.stdout


def main():
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("GPUPROF_", "LD_PRELOAD"))}
    clean["CUDA_VISIBLE_DEVICES"] = ""
    with tempfile.TemporaryDirectory() as folder:
        bare = run(clean, folder)
        profiled = run({**clean, "LD_PRELOAD": str(pathlib.Path(sys.argv[1]).resolve())}, folder)
        dumps = len(list(pathlib.Path(folder).glob("gpuprof-out/2*/*.gpuprof")))
    print(f"bare {bare}, profiled {profiled}, dumps {dumps}")
    return 0 if bare[0] == 7 and bare == profiled and dumps == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
