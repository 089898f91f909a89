# SPDX-License-Identifier: Apache-2.0
"""30 eager steps of a small model on a GPU that has little to do. Arguments: gpt, cnn, resnet, nanogpt (a loop as in
nanoGPT's train.py) or trainer (that of transformers); what each step does beside it: nothing, python (5 ms of it), file (a
write that takes some ms), lock (5 ms until another thread gives it), item."""
import math
import os
import sys
import tempfile
import threading
import time

import torch
from torch import nn

STEPS = 30

WAIT_S = 0.005


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.mix = nn.Linear(width, 3 * width)

    def forward(self, x):
        q, k, v = self.mix(self.norm(x)).chunk(3, dim=-1)
        x = x + torch.softmax(q @ k.transpose(1, 2), dim=-1) @ v
        return x + self.down(nn.functional.gelu(self.up(x)))


def gpt():
    return nn.Sequential(nn.Linear(32, 32), *[Block(32) for _ in range(4)]), torch.randn(4, 16, 32)


def cnn():
    layers = [layer for _ in range(8) for layer in (nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU())]
    return nn.Sequential(*layers), torch.randn(2, 4, 16, 16)


def plain_python():
    end, count = time.perf_counter() + WAIT_S, 0
    while time.perf_counter() < end:
        count += 1
    return count


def write_file(file, megabyte=b"x" * (1 << 20)):
    end = time.perf_counter() + WAIT_S
    while time.perf_counter() < end:
        os.pwrite(file.fileno(), megabyte, 0)
        os.fsync(file.fileno())


def wait_for_lock(lock):
    lock.acquire()
    threading.Timer(WAIT_S, lock.release).start()
    lock.acquire()
    lock.release()


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.second = [nn.Conv2d(width, width, 3, padding=1, bias=False) for _ in range(2)]
        self.norm1, self.norm2 = nn.BatchNorm2d(width), nn.BatchNorm2d(width)

    def forward(self, x):
        y = torch.relu(self.norm1(self.first(x)))
        return torch.relu(x + self.norm2(self.second(y)))


def resnet():
    layers = [nn.Conv2d(3, 8, 3, padding=1), *[Residual(8) for _ in range(8)], nn.Flatten(), nn.Linear(8 * 64, 10)]
    return nn.Sequential(*layers), torch.randn(2, 3, 8, 8)


class CausalBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.norm1, self.norm2 = heads, nn.LayerNorm(width, bias=False), nn.LayerNorm(width, bias=False)
        self.mix, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.up, self.down = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.mix(self.norm1(x)).split(width, dim=2)
        q, k, v = [part.view(batch, length, self.heads, width // self.heads).transpose(1, 2) for part in parts]
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).contiguous().view(batch, length, width))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class LanguageModel(nn.Module):
    def __init__(self, tokens=64, length=16, width=32, layers=4):
        super().__init__()
        self.tokens, self.places = nn.Embedding(tokens, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(CausalBlock(width, 4) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width, bias=False), nn.Linear(width, tokens, bias=False)

    def forward(self, inputs, targets):
        x = self.tokens(inputs) + self.places(torch.arange(inputs.shape[1], device=inputs.device))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return nn.functional.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))


def train_nanogpt(beside, length=16, micro_steps=4):
    """Batches from an array on the host, several micro-batches a step, clipped gradients, its learning rate, a log."""
    data = torch.randint(0, 64, (4096,))

    def batch():
        at = torch.randint(len(data) - length, (4,)).tolist()
        x = torch.stack([data[i:i + length] for i in at])
        y = torch.stack([data[i + 1:i + 1 + length] for i in at])
        return x.pin_memory().to("cuda", non_blocking=True), y.pin_memory().to("cuda", non_blocking=True)
    model = LanguageModel(length=length).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.95))
    x, y = batch()
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = 1e-3 * (1 + math.cos(math.pi * step / STEPS)) / 2
        for _ in range(micro_steps):
            loss = model(x, y) / micro_steps
            x, y = batch()
            loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 10 == 0:
            print(f"iter {step}: loss {loss.item() * micro_steps:.4f}")
        beside(loss)


class Tokens(torch.utils.data.Dataset):
    def __len__(self):
        return 256

    def __getitem__(self, index):
        tokens = (torch.arange(16) * (index + 3)) % 128
        return {"input_ids": tokens, "labels": tokens}


def train_by_trainer(beside):
    import transformers

    class Beside(transformers.TrainerCallback):
        def on_step_end(self, args, state, control, **_):
            beside(None)
    shape = transformers.GPT2Config(vocab_size=128, n_positions=32, n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)
    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(output_dir=folder, max_steps=STEPS, per_device_train_batch_size=4, report_to=[],
                                                   save_strategy="no", logging_steps=10)
        trainer = transformers.Trainer(model=transformers.GPT2LMHeadModel(shape), args=arguments, train_dataset=Tokens(),
                                       callbacks=[Beside()])
        trainer.train()


def train(make, beside):
    model, x = make()
    model, x = model.cuda(), x.cuda()
    optimizer = torch.optim.AdamW(model.parameters(), fused=False, foreach=False)
    for _ in range(STEPS):
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        beside(loss)


def main():
    torch.set_num_threads(1)
    model, what = sys.argv[1:]
    lock = threading.Lock()
    with tempfile.TemporaryFile() as file:
        beside = {"nothing": lambda loss: None, "python": lambda loss: plain_python(), "file": lambda loss: write_file(file),
                  "lock": lambda loss: wait_for_lock(lock), "item": lambda loss: loss.item()}[what]
        if model == "trainer":
            train_by_trainer(beside)
        elif model == "nanogpt":
            train_nanogpt(beside)
        else:
            train({"gpt": gpt, "cnn": cnn, "resnet": resnet}[model], beside)


main()
