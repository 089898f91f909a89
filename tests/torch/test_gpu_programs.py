# SPDX-License-Identifier: Apache-2.0
"""What tests/gpu runs on a GPU machine, its programs and its judging, with a real PyTorch over the simulated stack."""
import pathlib
import sys

import pytest

import frameworks
import harness
import lab as lab_module
from stack import simulated

CASES = [(frameworks.training_steps, "resnet50"), (frameworks.training_steps, "gpt-injection"), (frameworks.training_steps, "gpt-fsdp"),
         (frameworks.training_steps, "gpt-graph"), (frameworks.compiled_steps, "gpt"), (frameworks.triton_kernels, "kernels"),
         (frameworks.requests, "eager"), (frameworks.requests, "inside-node")]


@pytest.fixture
def lab(tmp_path, monkeypatch):
    compiled = pathlib.Path(sys.prefix).parent / "compiled"  # it takes minutes, and holds for each run of these tests
    caches = {"TORCHINDUCTOR_CACHE_DIR": str(compiled / "inductor"), "TRITON_CACHE_DIR": str(compiled / "triton")}
    for name, value in simulated({**caches, "PYTHONWARNINGS": "ignore"}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    monkeypatch.setattr(frameworks, "same_result", lambda profiled, bare: True)  # kernels compute nothing here
    made = lab_module.Lab(pathlib.Path(harness.BUILD), tmp_path, 600)
    made.part = "part"
    return made


def row_of(lab, cases, name):
    lab.cases([each for each in cases(lab) if each[0] == name])
    [row] = lab.rows
    return row


@pytest.mark.parametrize("cases, name", CASES, ids=[f"{cases.__name__}-{name}" for cases, name in CASES])
def test_program(cases, name, lab):
    row = row_of(lab, cases, name)
    assert row["verdict"] == "ok", row
    numbers = row["numbers"]
    assert numbers["launches"] > 0 and numbers["joined"] <= numbers["launches"]
    if name in ("resnet50", "gpt-fsdp", "gpt", "eager"):
        assert numbers["kernels"] == numbers["theirs"] > 100 and len(numbers["operators"]) > 20
    if cases is frameworks.compiled_steps:  # of the compiled net its two passes and what it calls of PyTorch are left
        assert {"CompiledFunction", "CompiledFunctionBackward", "aten::mm"} <= set(numbers["operators"])
        assert "aten::layer_norm" not in numbers["operators"] and "aten::gelu" not in numbers["operators"]


MODELS = """
import sys
import torch
sys.path.insert(0, sys.argv[1])
import models
print(sum(p.numel() for p in models.resnet50().parameters()), models.resnet50().eval()(torch.zeros(1, 3, 64, 64)).shape[1])
torch.manual_seed(1)
gpt, tokens = models.GPT(64, 2, 12).eval(), torch.randint(0, models.VOCABULARY, (2, 9))
with torch.no_grad():
    caches = gpt.caches(2)
    one_by_one = [gpt(tokens[:, i:i + 1], caches, torch.tensor([i])) for i in range(9)]
    print(torch.allclose(torch.cat(one_by_one, dim=1), gpt(tokens), atol=1e-5))
"""


def test_models_are_what_they_are_called():
    """ResNet-50 as published has 25,557,032 parameters; a GPT says the same with its cache and without."""
    done = harness.run([sys.executable, "-c", MODELS, frameworks.PROGRAMS], env=simulated(harness.environment()))
    assert done.out.split() == ["25557032", "1000", "True"], done.err


def test_what_is_missing_is_found(lab):
    command = [frameworks.PYTHON, frameworks.PROGRAMS / "train.py", "--steps", 40, "--model", "gpt", "--fsdp"]
    lab.cases([frameworks.training(lab, "gpt-fsdp", command, GPUPROF_ACTIVITIES="-op,-tensor")])
    [row] = lab.rows
    assert row["verdict"] == "DIFFERS"
    for text in ("operators differ", "belong to no operator", "bytes allocated"):
        assert text in row["text"]
