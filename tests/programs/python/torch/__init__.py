# SPDX-License-Identifier: Apache-2.0
"""Stands for PyTorch where only the steps of its optimizers and its data loader's workers matter: modules, names and order of
imports as there."""
from . import optim
from . import serialization
from . import utils
