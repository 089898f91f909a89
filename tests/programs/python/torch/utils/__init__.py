# SPDX-License-Identifier: Apache-2.0
import weakref

from . import data


def swap_tensors(t1, t2):
    """Raises where PyTorch's does."""
    for name, tensor in ("t1", t1), ("t2", t2):
        if weakref.getweakrefs(tensor):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
