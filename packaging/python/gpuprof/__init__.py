# SPDX-License-Identifier: Apache-2.0
"""Starts the gpuprof command that this package holds, and says where its library is."""
import os
import subprocess
import sys

_COMMAND = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "gpuprof")


def lib():
    """The path of libgpuprof.so, for LD_PRELOAD."""
    return subprocess.check_output([_COMMAND, "lib"], universal_newlines=True).rstrip("\n")


def main():
    """Becomes the command, with this program's arguments."""
    os.execv(_COMMAND, ["gpuprof"] + sys.argv[1:])
