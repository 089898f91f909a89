#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that includes follow the data: preload -> collector -> formats <- tools.

usage: check_includes.py REPOSITORY | --self-test
"""
import pathlib
import re
import sys
import tempfile

# Folder -> what it may include from the repository (itself is always allowed). The longest match holds.
ALLOWED = {
    "preload": ["collector", "formats/core"],
    "collector": ["formats/core"],
    "formats/core": [],
    "formats": [],
    "tools": ["formats"],
}
# Headers of NVIDIA, and the only files that may include them.
VENDOR = re.compile(r"^(cuda|cupti|nccl|nvtx|driver_types|vector_types|builtin_types|crt/|generated_)")
VENDOR_FILES = [
    re.compile(r"^preload/(cudart|cupti|driver|nccl)_[a-z0-9_]+\.cpp$"),
    re.compile(r"^preload/[a-z0-9_]+\.h$"),
    re.compile(r"^collector/(cupti|nvtx)(_[a-z0-9_]+)?\.(h|cpp)$"),
]
GENERATED = {"gpuprof_version.h"}  # by CMake, into the build
SOURCES = {".h", ".cpp", ".c", ".cc", ".def", ".inc", ".S"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def room_of(path):
    """The folder of ALLOWED that `path` (relative to the repository) lies in, or None."""
    rooms = [room for room in ALLOWED if path.startswith(room + "/")]
    return max(rooms, key=len, default=None)


def problem_of(path, quote, name):
    """What is wrong with `#include name` in file `path`, or None."""
    room = room_of(path)
    base = name.rsplit("/", 1)[-1]
    if (VENDOR.match(name) or VENDOR.match(base)) and not name.startswith(tuple(r + "/" for r in ALLOWED)):
        if not any(pattern.match(path) for pattern in VENDOR_FILES):
            return f"vendor header {name}: only preload/{{cudart,cupti,driver,nccl}}_*, preload/*.h and collector/{{cupti,nvtx}}* may include one"
        return None
    if name.endswith(".pb.h"):
        if room in ("preload", "collector", "formats/core"):
            return f"{name}: {room}/ runs in the traced process, which gets no protobuf library"
        return None
    target = room_of(name)
    if target is None:
        if quote == '"' and name.split("/")[0] in ("tests", "examples", "docs"):
            return f"{name}: {room}/ may not include from {name.split('/')[0]}/"
        if quote == '"' and name not in GENERATED:
            return f'"{name}": write includes of the project from the repository root'
        return None
    allowed = [room] + ALLOWED[room]
    if any(name.startswith(folder + "/") for folder in allowed):
        if room == "formats/core" and target != "formats/core":
            return f"{name}: formats/core/ may include formats/core/ only"
        return None
    return f"{name}: {room}/ may include {', '.join(folder + '/' for folder in allowed)} only"


def check(repository):
    """Every violation, as "file:line: what"."""
    problems = []
    files = 0
    for room in ("preload", "collector", "formats", "tools"):
        for file in sorted((repository / room).rglob("*")):
            if file.suffix not in SOURCES:
                continue
            files += 1
            path = file.relative_to(repository).as_posix()
            for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
                match = INCLUDE.match(line)
                problem = match and problem_of(path, match[1], match[2])
                if problem:
                    problems.append(f"{path}:{number}: {problem}")
    return files, problems


SELF_TEST = [  # file, include line, whether it is a violation
    ("preload/hook.h", '#include "collector/collector.h"', False),
    ("preload/hook.h", '#include "formats/core/record.h"', False),
    ("preload/hook.h", '#include "formats/trace.h"', True),
    ("preload/hook.h", '#include "tools/command.h"', True),
    ("preload/cudart_hooks.cpp", "#include <cuda_runtime_api.h>", False),
    ("preload/resolve.cpp", "#include <cuda_runtime_api.h>", True),
    ("collector/schedule.cpp", '#include "preload/api.h"', True),
    ("collector/schedule.cpp", '#include "collector/schedule.h"', False),
    ("collector/schedule.cpp", '#include "schedule.h"', True),
    ("collector/cupti_session.cpp", "#include <cupti.h>", False),
    ("collector/nvtx_injection.cpp", "#include <nvtx3/nvToolsExt.h>", False),
    ("collector/clock.cpp", "#include <cupti.h>", True),
    ("collector/drain.cpp", '#include "formats/gpuprof.pb.h"', True),
    ("formats/reader.cpp", '#include "formats/core/record.h"', False),
    ("formats/reader.cpp", '#include "formats/gpuprof.pb.h"', False),
    ("formats/reader.cpp", '#include "collector/schedule.h"', True),
    ("formats/reader.cpp", "#include <nccl.h>", True),
    ("formats/core/encode.h", '#include "formats/trace.h"', True),
    ("tools/cmd_info.cpp", '#include "formats/trace.h"', False),
    ("tools/cmd_info.cpp", "  #  include  <collector/schedule.h>", True),
    ("tools/cmd_info.cpp", '#include "tests/simcuda/core/simcuda.h"', True),
    ("tools/cmd_info.cpp", "#include <CLI/CLI.hpp>", False),
]


def self_test():
    wrong = 0
    for path, line, violation in SELF_TEST:
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / path
            file.parent.mkdir(parents=True)
            file.write_text("// first line\n" + line + "\n")
            _, problems = check(pathlib.Path(folder))
            if bool(problems) != violation or (problems and not problems[0].startswith(f"{path}:2: ")):
                print(f"{path}: {line}: expected {'a violation' if violation else 'none'}, got {problems}")
                wrong += 1
    print(f"check_includes: self-test, {len(SELF_TEST)} cases, {wrong} wrong")
    return 1 if wrong else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if len(arguments) != 1:
        print(__doc__.strip().splitlines()[-1], file=sys.stderr)
        return 2
    files, problems = check(pathlib.Path(arguments[0]))
    print("\n".join(problems + [f"check_includes: {files} files, {len(problems)} violations"]))
    return 1 if problems or files == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
