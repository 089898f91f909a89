# SPDX-License-Identifier: Apache-2.0
"""Compiles the CUDA programs of the GPU test into FOLDER/programs. usage: build_programs.py FOLDER [LIBCUDA]"""
import pathlib
import subprocess
import sys

import lab
import natives


def main():
    folder = pathlib.Path(sys.argv[1]).resolve() / "programs"
    root = lab.toolkit()
    if not root:
        print("no nvcc on the PATH", file=sys.stderr)
        return 1
    folder.mkdir(parents=True, exist_ok=True)
    for name, command in natives.builds(sys.argv[2] if len(sys.argv) > 2 else natives.find_driver(root)).items():
        arguments = [c.replace("{out}", str(folder / name)) for c in command]
        if subprocess.run([root / "bin/nvcc", *arguments]).returncode != 0:
            print(f"{name}: left out", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
