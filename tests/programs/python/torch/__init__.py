# SPDX-License-Identifier: Apache-2.0
"""Stands for PyTorch where only the steps of its optimizers and its data loader's workers matter: modules, names and order of
imports as there."""
import ctypes

try:
    ctypes.CDLL(__file__.replace("__init__.py", "lib/libtorch_global_deps.so"), mode=ctypes.RTLD_GLOBAL)
except OSError:
    pass  # as there where the library is missing

from . import _C
from . import optim
from . import serialization
from . import utils
