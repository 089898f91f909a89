# SPDX-License-Identifier: Apache-2.0
"""The CPythons of this machine: pytest's own, Debian's, pyenv's, and those that newer_python.sh makes."""
import functools
import os
import pathlib
import subprocess
import sys

import pytest

OLDEST, NEWEST = (3, 8), (3, 15)  # whose frames are read
MADE = [(3, 14), (3, 15)]
FOLDER = pathlib.Path(os.environ.get("GPUPROF_NEWER_PYTHON") or
                     pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "gpuprof/newer-python")
VERSION = """import sys, sysconfig
if not sysconfig.get_config_var("Py_GIL_DISABLED"): print(*sys.version_info[:2])"""


@functools.cache
def pythons():
    """One interpreter of each minor version, with the GIL."""
    versions = pathlib.Path(os.environ.get("PYENV_ROOT") or pathlib.Path.home() / ".pyenv") / "versions"
    made = sorted((FOLDER / "usr/bin").glob("python3.*")) if (FOLDER / "made_for").exists() else []
    found = {}
    for candidate in [pathlib.Path(sys.executable), *sorted(pathlib.Path("/usr/bin").glob("python3.[0-9]*")),
                      *sorted(versions.glob("*/bin/python3")), *made]:
        done = subprocess.run([candidate, "-c", VERSION], capture_output=True, text=True)
        if done.returncode == 0 and done.stdout:
            found.setdefault(tuple(map(int, done.stdout.split())), str(candidate))
    return found


def each_python():
    """A test for each version: its argument `version` is a key of pythons()."""
    cases = []
    for version in sorted({*pythons(), *MADE}):
        name = ".".join(map(str, version))
        missing = pytest.mark.skipif(version not in pythons(), reason=f"no CPython {name} here: tests/e2e/newer_python.sh makes one")
        if OLDEST <= version <= NEWEST:
            cases.append(pytest.param(version, id=name, marks=missing))
    return pytest.mark.parametrize("version", cases)
