# SPDX-License-Identifier: Apache-2.0
"""Stands for PyTorch's C++ module: from 2.5 on workers take a name from it."""
import ctypes
import os

if os.environ.get("LOOKALIKE_TORCH") not in ("1.13", "2.4"):
    def _set_thread_name(name):
        if ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0) != 0:  # PR_SET_NAME
            raise OSError("prctl")
