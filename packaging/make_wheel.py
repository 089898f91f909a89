#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lays out a wheel's files, for `wheel pack`, from what `cmake --install` put into a folder.

usage: make_wheel.py INSTALLED OUT VERSION ARCH     ARCH: x86_64 or aarch64
"""
import pathlib
import shutil
import sys

# Where the command looks for the library, from its own folder: ../lib.
FILES = {
    "bin/gpuprof": "gpuprof/bin/gpuprof",
    "lib/gpuprof/libgpuprof.so": "gpuprof/lib/libgpuprof.so",
    "lib/gpuprof/gpuprof-probe": "gpuprof/lib/gpuprof-probe",
}
DATA = ["share/man", "share/bash-completion", "share/zsh", "share/fish"]
LICENCES = ["LICENSE", "NOTICE", "THIRD-PARTY.txt"]
HERE = pathlib.Path(__file__).resolve().parent
# The newest glibc that the library and gpuprof-probe need; the command needs none. pip before 20.3 knows the old name alone.
GLIBC = (HERE / "newest_glibc.txt").read_text().strip()
OLD_NAMES = {"2.17": "manylinux2014", "2.12": "manylinux2010", "2.5": "manylinux1"}
TAGS = [f"py3-none-{name}_" for name in (OLD_NAMES.get(GLIBC), "manylinux_" + GLIBC.replace(".", "_")) if name]


def metadata(version, readme):
    licences = "".join(f"License-File: {name}\n" for name in LICENCES)
    return (f"Metadata-Version: 2.4\nName: gpuprof\nVersion: {version}\n"
            "Summary: Profiles a GPU training or inference program without a change to its code\n"
            f"License-Expression: Apache-2.0\n{licences}Requires-Python: >=3.8\n"
            "Classifier: Operating System :: POSIX :: Linux\nClassifier: Environment :: GPU :: NVIDIA CUDA\n"
            "Keywords: cuda,gpu,profiler,pytorch\nDescription-Content-Type: text/markdown\n\n" + readme)


def main(installed, out, version, arch):
    installed, out = pathlib.Path(installed), pathlib.Path(out)
    info = out / f"gpuprof-{version}.dist-info"
    (info / "licenses").mkdir(parents=True)
    for source, target in FILES.items():
        (out / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(installed / source, out / target)
        (out / target).chmod(0o755)
    for source in (HERE / "python/gpuprof").glob("*.py"):
        shutil.copyfile(source, out / "gpuprof" / source.name)  # the checkout's modes are its umask's
    for folder in DATA:
        shutil.copytree(installed / folder, out / f"gpuprof-{version}.data/data" / folder)
    documents = installed / "share/doc/gpuprof"
    for name in LICENCES:
        shutil.copy(documents / name, info / "licenses" / name)
    (info / "METADATA").write_text(metadata(version, (documents / "README.md").read_text()))
    tags = "".join(f"Tag: {tag}{arch}\n" for tag in TAGS)
    (info / "WHEEL").write_text(f"Wheel-Version: 1.0\nGenerator: gpuprof\nRoot-Is-Purelib: false\n{tags}")
    (info / "entry_points.txt").write_text("[console_scripts]\ngpuprof = gpuprof:main\n")


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
