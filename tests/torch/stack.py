# SPDX-License-Identifier: Apache-2.0
"""The environment in which PyTorch's CUDA build runs on the simulated stack."""
import importlib.metadata
import os
import sys

import harness
import truth


def torch_release():
    return tuple(int(part) for part in importlib.metadata.version("torch").split(".")[:2])


def simulated(base):
    """The simulated libraries before all others: PyTorch, the toolkit's other libraries and gpuprof find them."""
    nccl = f"{harness.SIMCUDA}_nccl2_30:" if torch_release() > (2, 11) else ""
    libraries = f"{nccl}{harness.SIMCUDA}:{os.environ['GPUPROF_TORCH_LIBRARIES']}"
    return {**base, "LD_LIBRARY_PATH": libraries, "SIMCUDA_DEVICES": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def profiled(folder, window, *command, **settings):
    """Runs `command` under gpuprof, which records the steps `window`; returns how it went and its dump against the
    simulator's log."""
    schedule = f"skip_first={window.start},warmup=0,active={len(window)}"
    env = simulated(harness.preloaded(GPUPROF_OUTPUT=folder / "out", SIMCUDA_TRUTH=folder / "truth", GPUPROF_LOG="info",
                                      **{"GPUPROF_STEP": "optimizer", "GPUPROF_SCHEDULE": schedule, **settings}))
    (folder / "truth").mkdir()
    done = harness.run([sys.executable, *command], env=env, timeout=400)
    found = harness.dumps(folder / "out")
    assert len(found) == 1, done.err
    return done, truth.Comparison(found[0], folder / "truth")
