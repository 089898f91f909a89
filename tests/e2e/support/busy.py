# SPDX-License-Identifier: Apache-2.0
"""Other work on the machine, as users' machines have it."""
import contextlib
import os
import subprocess
import sys


@contextlib.contextmanager
def busy_loops(each):
    """So many for each core."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(each * os.cpu_count())]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
