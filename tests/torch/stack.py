# SPDX-License-Identifier: Apache-2.0
"""The environment in which PyTorch's CUDA build runs on the simulated stack."""
import os

import harness


def simulated(base):
    """The simulated libraries before all others: PyTorch, the toolkit's other libraries and gpuprof find them."""
    libraries = f"{harness.SIMCUDA}:{os.environ['GPUPROF_TORCH_LIBRARIES']}"
    return {**base, "LD_LIBRARY_PATH": libraries, "SIMCUDA_DEVICES": "1", "PYTHONDONTWRITEBYTECODE": "1"}
