# SPDX-License-Identifier: Apache-2.0
"""The CPythons of this machine: pytest's own, Debian's, pyenv's, and the one that newer_python.sh makes."""
import functools
import os
import pathlib
import subprocess
import sys

import pytest

OLDEST, NEWEST = (3, 8), (3, 14)  # whose frames are read
NEWER = pathlib.Path(os.environ.get("GPUPROF_NEWER_PYTHON") or
                     pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "gpuprof/python-3.14")
VERSION = """import sys, sysconfig
if not sysconfig.get_config_var("Py_GIL_DISABLED"): print(*sys.version_info[:2])"""


@functools.cache
def pythons():
    """One interpreter of each minor version, with the GIL."""
    versions = pathlib.Path(os.environ.get("PYENV_ROOT") or pathlib.Path.home() / ".pyenv") / "versions"
    made = [NEWER / "usr/bin/python3.14"] if (NEWER / "made_for").exists() else []
    found = {}
    for candidate in [pathlib.Path(sys.executable), *sorted(pathlib.Path("/usr/bin").glob("python3.[0-9]*")),
                      *sorted(versions.glob("*/bin/python3")), *made]:
        done = subprocess.run([candidate, "-c", VERSION], capture_output=True, text=True)
        if done.returncode == 0 and done.stdout:
            found.setdefault(tuple(map(int, done.stdout.split())), str(candidate))
    return found


def each_python():
    """A test for each version: its argument `version` is a key of pythons()."""
    cases = [pytest.param(v, id=".".join(map(str, v))) for v in sorted(pythons()) if OLDEST <= v <= NEWEST]
    if NEWEST not in pythons():
        missing = pytest.mark.skip(reason="no CPython 3.14 here: tests/e2e/newer_python.sh makes one (17 MB from Debian's mirror)")
        cases.append(pytest.param(NEWEST, id="3.14", marks=missing))
    return pytest.mark.parametrize("version", cases)
