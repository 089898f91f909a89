#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that includes follow the data: preload -> collector -> formats <- tools, and within collector, formats
and tools from the later rooms to the earlier ones.

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
# The rooms of a folder, from the ground up: a room includes itself and those before it. The room "" is what lies in the
# folder itself, or in a subfolder that is not listed.
ROOMS = {
    "collector": ["base", "record", "steps", "stacks", "sources", "cupti", "python", "torch", "samples", "runs", "window", ""],
    "formats": ["core", "io", "trace", "dump", "kineto_reader", "views", "writers", "writers/perfetto", "writers/kineto",
                "writers/xplane", ""],
    "tools": ["", "doctor", "report", "show", "parquet", "otlp", "sql", "commands"],
}
# Includes that go up all the same: file -> header -> reason. At most 12; one that is not there any more is a violation.
UPWARD = {
    "collector/record/session.h": {
        "collector/steps/step_tracker.h": "the session's state holds the step tracker by value: nothing may be allocated at load",
        "collector/steps/window_plan.h": "likewise the plan of windows",
    },
    "collector/record/names.cpp": {
        "collector/steps/kernel_steps.h": "names that begin anew in a child take the verdicts on kernels with them",
    },
    "collector/record/ring.cpp": {
        "collector/sources/nvtx.h": "a thread that ends gives back its open NVTX ranges",
        "collector/torch/open_ranges.h": "likewise PyTorch's",
    },
    "collector/stacks/stacks.cpp": {
        "collector/python/calling_frames.h": "a call stack has Python's frames in their places",
    },
    "collector/sources/device_info.cpp": {
        "collector/cupti/cupti_session.h": "the header of a dump names CUPTI's version",
    },
    "collector/cupti/cupti_sharing.cpp": {
        "collector/window/drain.h": "another tool that asks for CUPTI waits until the drain thread has let go of it",
    },
    "collector/python/bridge.cpp": {
        "collector/samples/data_worker.h": "an audit event shows when a process has become a DataLoader's worker",
    },
    "collector/python/modules.cpp": {
        "collector/torch/open_ranges.h": "a module's call is a range between PyTorch's operators",
    },
    "collector/samples/data_worker.cpp": {
        "collector/window/ancestor.h": "a worker finds the ring of the process that it loads for",
        "collector/window/drain.h": "a worker's windows are written by its own drain thread",
    },
}
MOST_UPWARD = 12
# Headers of NVIDIA, and the only files that may include them.
VENDOR = re.compile(r"^(cuda|cupti|nccl|nvtx|driver_types|vector_types|builtin_types|crt/|generated_)")
VENDOR_FILES = [
    re.compile(r"^preload/(cudart|cupti|driver|nccl)_[a-z0-9_]+\.cpp$"),
    re.compile(r"^preload/[a-z0-9_]+\.h$"),
    re.compile(r"^collector/cupti/[a-z0-9_]+\.(h|cpp)$"),
    re.compile(r"^collector/sources/nvtx(_[a-z0-9_]+)?\.(h|cpp)$"),
]
GENERATED = {"gpuprof_version.h"}  # by CMake, into the build
SOURCES = {".h", ".cpp", ".c", ".cc", ".def", ".inc", ".S"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def room_of(path):
    """The folder of ALLOWED that `path` (relative to the repository) lies in, or None."""
    rooms = [room for room in ALLOWED if path.startswith(room + "/")]
    return max(rooms, key=len, default=None)


def place_of(path):
    """(folder, level) of the room that `path` lies in: the longest that matches; None where there are no rooms."""
    folder = path.split("/")[0]
    rooms = ROOMS.get(folder)
    if not rooms:
        return None
    within = path[len(folder) + 1:]
    return folder, max((room for room in rooms if room and within.startswith(room + "/")), key=len, default="")


def upward_problem(path, name):
    """What is wrong with an include of the project within one folder, or None."""
    here, there = place_of(path), place_of(name)
    if not here or not there or here[0] != there[0]:
        return None
    order = ROOMS[here[0]]
    if order.index(there[1]) <= order.index(here[1]) or name in UPWARD.get(path, {}):
        return None
    return (f"{name}: {'/'.join(filter(None, here))}/ comes before {'/'.join(filter(None, there))}/; include downwards, move "
            "the code, or name the reason in UPWARD")


def problem_of(path, quote, name):
    """What is wrong with `#include name` in file `path`, or None."""
    room = room_of(path)
    base = name.rsplit("/", 1)[-1]
    if (VENDOR.match(name) or VENDOR.match(base)) and not name.startswith(tuple(r + "/" for r in ALLOWED)):
        if not any(pattern.match(path) for pattern in VENDOR_FILES):
            return f"vendor header {name}: only preload/{{cudart,cupti,driver,nccl}}_*, preload/*.h, collector/cupti/ and collector/sources/nvtx* may include one"
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
        return upward_problem(path, name)
    return f"{name}: {room}/ may include {', '.join(folder + '/' for folder in allowed)} only"


def check(repository):
    """Every violation, as "file:line: what"."""
    problems = []
    files = 0
    used = set()
    for room in ("preload", "collector", "formats", "tools"):
        for file in sorted((repository / room).rglob("*")):
            if file.suffix not in SOURCES:
                continue
            files += 1
            path = file.relative_to(repository).as_posix()
            for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
                match = INCLUDE.match(line)
                problem = match and problem_of(path, match[1], match[2])
                if match:
                    used.add((path, match[2]))
                if problem:
                    problems.append(f"{path}:{number}: {problem}")
    return files, problems + unused_reasons(repository, used)


def unused_reasons(repository, used):
    """Reasons for includes that are not there (of files that are), and too many of them."""
    known = [(path, name) for path, names in UPWARD.items() for name in names if (repository / path).exists()]
    problems = [f"{path}: UPWARD names {name}, which it does not include" for path, name in known if (path, name) not in used]
    if len(known) > MOST_UPWARD:
        problems.append(f"UPWARD has {len(known)} includes; at most {MOST_UPWARD}")
    return problems


SELF_TEST = [  # file, include line, whether it is a violation
    ("preload/hook.h", '#include "collector/record/collector.h"', False),
    ("preload/hook.h", '#include "formats/core/record.h"', False),
    ("preload/hook.h", '#include "formats/trace/trace.h"', True),
    ("preload/hook.h", '#include "tools/command.h"', True),
    ("preload/cudart_hooks.cpp", "#include <cuda_runtime_api.h>", False),
    ("preload/resolve.cpp", "#include <cuda_runtime_api.h>", True),
    ("collector/steps/schedule.cpp", '#include "preload/api.h"', True),
    ("collector/steps/schedule.cpp", '#include "collector/steps/schedule.h"', False),
    ("collector/steps/schedule.cpp", '#include "schedule.h"', True),
    ("collector/cupti/cupti_session.cpp", "#include <cupti.h>", False),
    ("collector/sources/nvtx_injection.cpp", "#include <nvtx3/nvToolsExt.h>", False),
    ("collector/base/clock.cpp", "#include <cupti.h>", True),
    ("collector/window/drain.cpp", '#include "formats/gpuprof.pb.h"', True),
    ("formats/reader.cpp", '#include "formats/core/record.h"', False),
    ("formats/reader.cpp", '#include "formats/gpuprof.pb.h"', False),
    ("formats/reader.cpp", '#include "collector/steps/schedule.h"', True),
    ("formats/reader.cpp", "#include <nccl.h>", True),
    ("formats/core/encode.h", '#include "formats/trace/trace.h"', True),
    ("tools/commands/cmd_info.cpp", '#include "formats/trace/trace.h"', False),
    ("tools/commands/cmd_info.cpp", "  #  include  <collector/steps/schedule.h>", True),
    ("tools/commands/cmd_info.cpp", '#include "tests/simcuda/core/simcuda.h"', True),
    ("collector/steps/schedule.cpp", '#include "collector/base/clock.h"', False),
    ("collector/steps/schedule.cpp", '#include "collector/window/drain.h"', True),
    ("collector/base/clock.cpp", '#include "collector/record/session.h"', True),
    ("collector/python/bridge.cpp", '#include "collector/samples/workers.h"', True),
    ("formats/io/json_text.cpp", '#include "formats/trace/trace.h"', True),
    ("formats/writers/exporter.h", '#include "formats/writers/perfetto/perfetto_export.h"', True),
    ("formats/writers/perfetto/perfetto_export.cpp", '#include "formats/writers/exporter.h"', False),
    ("formats/views/slices.cpp", '#include "formats/input.h"', True),
    ("formats/input.cpp", '#include "formats/kineto_reader/reader.h"', False),
    ("tools/commands/cmd_info.cpp", "#include <CLI/CLI.hpp>", False),
    ("tools/commands/cmd_open.cpp", '#include "tools/show/show_run.h"', False),
    ("tools/show/show_run.cpp", '#include "tools/commands/options.h"', True),
    ("tools/show/show_run.cpp", '#include "tools/report/report_html.h"', False),
    ("tools/report/report_html.cpp", '#include "tools/show/browser.h"', True),
    ("tools/analysis/report.cpp", '#include "tools/console.h"', False),
    ("tools/inputs.cpp", '#include "tools/show/browser.h"', True),
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
