#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that what CONTRIBUTING.md tells to add is in all its places, where no compiler can tell.

* A setting of formats/core/settings.def fills each field of Config.
* tests/unit/formats/core/encode_test.cpp names each kind of records that dumps hold.
* formats/exporters.cpp has a row for each writer that a header of formats/writers declares as one.
* tools/analysis/tables.cpp sums up each table of Tables, and tools/report/report_json.cpp writes it.
* Something in tools/report writes each column of the tables of tools/report/html/page.js.
* tools/analysis/replay acts on each Fix, and kFixes counts to the last of them.
* Something calls each function of a .cpp file of tools/analysis and tools/report that no header declares.
* tools/main.cpp has a row for each tools/commands/cmd_<name>.cpp.
* A test names each SIMCUDA_* variable of the simulator.
* A test names each function of preload/apis.def. One of a stream per thread (_ptsz, _ptds) goes with the other; one that CUPTI alone
  shows has no hook. The driver's are all asked for by tests/e2e/recording/test_ways.py.
* A report knows what each collective of preload/apis.def moves, and has a name for it. NCCL 2.32's ...Config do the same.
* packaging/third_party.sh and NOTICE name each library of tools/setup.sh, unless nothing of it is shipped.

usage: check_places.py REPOSITORY | --self-test
"""
import functools
import pathlib
import re
import sys
import tempfile

# Packages of tools/setup.sh with headers or libraries of which packages of gpuprof hold nothing.
NOT_SHIPPED = {"libgtest-dev", "libbenchmark-dev"}
# What no library's package brings, and where NOTICE names a component by another word.
FROM_THE_COMPILER = {"libc6-dev", "libstdc++-12-dev"}


class Tree:
    def __init__(self, root):
        self.root = root

    def text(self, path):
        file = self.root / path
        return file.read_text(errors="replace") if file.exists() else ""

    def files(self, pattern):
        return sorted(self.root.glob(pattern))

    @functools.cache
    def headers(self, folder):
        return self.texts(f"{folder}/**/*.h")

    def texts(self, pattern):
        return "\n".join(file.read_text(errors="replace") for file in self.files(pattern))


def fields_of(text, struct):
    """Names of a struct's fields. Comments, functions, constants and structs within are left out."""
    match = re.search(rf"^struct {struct} \{{\n(.*?)^\}};", text, re.M | re.S)
    names = []
    for line in re.sub(r"//[^\n]*", "", match[1] if match else "").split(";"):
        line = re.sub(r"\{[^}]*\}$", "", line.strip())
        if not line or "(" in line or line.startswith(("static", "inline", "struct", "enum", "}")):
            continue
        kind, _, rest = re.sub(r"<[^<>]*(<[^<>]*>)?[^<>]*>", "", line).partition(" ")
        names += [name for name in re.findall(r"(?:^|,)\s*(\w+)", re.sub(r"=[^,]*|\[[^\]]*\]", "", rest)) if kind]
    return names


def setting_problems(tree):
    header = "formats/core/settings.h"
    readers = tree.text("formats/core/settings.def") + tree.text("formats/core/setting_values.cpp")
    for field in fields_of(tree.text(header), "Config"):
        if not re.search(rf"\bconfig\.{field}\b", readers):
            yield f"{header}: no setting fills the field {field} of Config; has formats/core/settings.def its row?"


def kind_problems(tree):
    test = "tests/unit/formats/core/encode_test.cpp"
    kinds = re.findall(r"^\s*RECORDED\((\w+), \d+", tree.text("formats/core/record.h"), re.M)
    if not kinds:
        yield "formats/core/record.h: found no record kind; how are they written now?"
    for name in kinds:
        if not re.search(rf"\bKind::{name}\b", tree.text(test)):
            yield f"{test}: does not say what of a record of the kind {name} comes out again"


def format_problems(tree):
    rows = tree.text("formats/exporters.cpp")
    for file in tree.files("formats/writers/**/*_export.h"):
        text = file.read_text()
        for name in re.findall(r"^bool (write_\w+)\(const Trace& trace, const std::string& path, const ExportOptions&", text, re.M):
            if not re.search(rf"\b{name}\b", rows) and name not in WITHOUT_A_ROW:
                yield f"formats/exporters.cpp: no row for {name} of {file.relative_to(tree.root)}"


WITHOUT_A_ROW = {"write_kineto_folder": "the folder that two formats share"}


def table_problems(tree):
    header, sums, json = "tools/analysis/tables.h", "tools/analysis/tables.cpp", "tools/report/report_json.cpp"
    rows = re.search(r"^struct Tables \{\n(.*?)^\};", tree.text(header), re.M | re.S)
    names = [name for line in re.findall(r"std::vector<\w+> ([^;]+);", rows[1] if rows else "")
             for name in re.findall(r"\w+", line)]
    if not names:
        yield f"{header}: found no table; how are they written now?"
    for name in names:
        if not re.search(rf"\bout_\.{name}\b", tree.text(sums)):
            yield f"{sums}: nothing fills the table {name} of Tables"
        if not re.search(rf"\btables\.{name}\b", tree.text(json)):
            yield f"{json}: does not write the table {name} of Tables"


def page_problems(tree):
    page = "tools/report/html/page.js"
    rows = re.search(r"^const TABLES = \[\n(.*?)^\];", tree.text(page), re.M | re.S)
    columns = re.findall(r"\['(\w+)', (?:'[^']*'|`[^`]*`|[\w.]+), '\w+'", rows[1] if rows else "")
    if not columns:
        yield f"{page}: found no column of a table; how are they written now?"
    written = tree.texts("tools/report/*.cpp")
    for name in sorted(set(columns)):
        if f'"{name}"' not in written and f".{name} = " not in tree.text(page):
            yield f"{page}: a table has a column {name}, which nothing in tools/report writes"


def fix_problems(tree):
    header = "tools/analysis/replay/replay_piece.h"
    match = re.search(r"^enum class Fix[^{]*\{(.*?)^\};", tree.text(header), re.M | re.S)
    names = re.findall(r"(\w+),", re.sub(r"//[^\n]*", "", match[1] if match else ""))
    if not names:
        yield f"{header}: found no Fix; how are they written now?"
    last = re.search(r"kFixes = static_cast<size_t>\(Fix::(\w+)\)", tree.text(header))
    if names and (not last or last[1] != names[-1]):
        yield f"{header}: kFixes does not count to Fix::{names[-1]}, the last"
    code = tree.texts("tools/analysis/replay/*.cpp")
    for name in names:
        if name != "none" and not re.search(rf"\bFix::{name}\b", code):
            yield f"tools/analysis/replay: takes nothing away for Fix::{name}"


def unused_problems(tree):
    """A compiler only warns of them."""
    for file in tree.files("tools/analysis/**/*.cpp") + tree.files("tools/report/**/*.cpp"):
        text = re.sub(r"//[^\n]*", "", file.read_text())
        for name in re.findall(r"^ {0,2}(?!return\b|using\b|else\b|explicit\b)[A-Za-z_][\w:<>,&* ]*[ &*>](\w+)\([^;{}]*\)(?: const)? \{$", text, re.M):
            uses = len(re.findall(rf"(?<![.\w]){name}\b|\.{name}\(", text))  # not a field of that name
            if uses == 1 and not re.search(rf"\b{name}\(", tree.headers("tools")):
                yield f"{file.relative_to(tree.root)}: nothing calls {name}"


def command_problems(tree):
    rows = tree.text("tools/main.cpp")
    for file in tree.files("tools/commands/cmd_*.cpp"):
        name = file.stem.removeprefix("cmd_")
        if re.search(rf"^int run_{name}\(", file.read_text(), re.M) and not re.search(rf'^    \{{"{name}"', rows, re.M):
            yield f"tools/main.cpp: no row for {name} of {file.relative_to(tree.root)}"


def simulator_problems(tree):
    sources = "".join(file.read_text() for file in tree.files("tests/simcuda/**/*.cpp") if "unit" not in file.parts)
    tests = "\n".join(file.read_text(errors="replace") for pattern in ("tests/**/*.cpp", "tests/**/*.py", "tests/**/*.sh")
                      for file in tree.files(pattern)
                      if "simcuda" not in file.parts or "unit" in file.parts)
    names = set(re.findall(r'"(SIMCUDA_[A-Z0-9_]+)"', sources))
    if not names:
        yield "tests/simcuda: found no SIMCUDA_* variable; how are they read now?"
    for name in sorted(names):
        if not re.search(rf"\b{name}\b", tests):
            yield f"tests: none names the simulator's switch {name}"


# Hooks written by hand that do the same as another one.
LIKE = {"cuptiEnableDomain": "cuptiEnableCallback", "cuptiEnableAllDomains": "cuptiEnableCallback",
        "cuptiActivityEnableAndDump": "cuptiActivityEnable"}


def call_problems(tree):
    rows = re.findall(r"^GPUPROF_(?:API|API_AS|HAND)\(\w+, (\w+)", tree.text("preload/apis.def"), re.M)
    if not rows:
        yield "preload/apis.def: found no function; how are they written now?"
    tests = set(re.findall(r"\w+", "\n".join(
        file.read_text(errors="replace") for pattern in ("tests/**/*.cpp", "tests/**/*.c", "tests/**/*.h", "tests/**/*.def", "tests/**/*.py")
        for file in tree.files(pattern) if "simcuda" not in file.parts or "unit" in file.parts)))
    for name in rows:
        if not re.search(r"_pt[ds][sz]$", name) and LIKE.get(name, name) not in tests:
            yield f"tests: none names {name} of preload/apis.def"


def collective_problems(tree):
    rows = re.findall(r"^GPUPROF_API(?:_AS)?\(nccl, (\w+),.*\bcollective\)", tree.text("preload/apis.def"), re.M)
    if not rows:
        yield "preload/apis.def: found no collective; how are they written now?"
    for file in ("tools/analysis/ranks/bus_bandwidth.cpp", "formats/trace/names.cpp"):
        for name in rows:
            if f'"{name.removesuffix("Config")}"' not in tree.text(file):
                yield f"{file}: does not know {name} of preload/apis.def"


def library_problems(tree):
    setup, licences, notice = "tools/setup.sh", "packaging/third_party.sh", "NOTICE"
    packages = re.search(r"^packages=\(\n(.*?)^\)", tree.text(setup), re.M | re.S)
    wanted = {row for row in re.findall(r'^  "([^|"]+)\|', packages[1] if packages else "", re.M)
              if row.endswith("-dev") or row.startswith("libjs-")} - NOT_SHIPPED
    components = re.search(r"^components=\(\n(.*?)^\)", tree.text(licences), re.M | re.S)
    shipped = dict(re.findall(r'^  "([^|"]+)\|([^|"]+)', components[1] if components else "", re.M))
    both = {"libelf-dev": "libdw-dev"}  # one package of elfutils has the licence of both
    for name in sorted(wanted):
        if both.get(name, name) not in shipped:
            yield f"{licences}: no row for {name}, which {setup} installs; is its licence in the packages?"
    for name, title in shipped.items():
        for word in re.split(r", ", title.split(": ")[-1] if name == "libstdc++-12-dev" else title.split(":")[0]):
            if word not in tree.text(notice):
                yield f"{notice}: does not name {word} ({name}), which {licences} lists"
        if name not in wanted | FROM_THE_COMPILER:
            yield f"{licences}: lists {name}, which {setup} does not install"


def check(root):
    tree = Tree(root)
    problems = []
    for part in (setting_problems, kind_problems, format_problems, table_problems, page_problems, fix_problems, unused_problems,
                 command_problems, simulator_problems, call_problems, collective_problems, library_problems):
        problems += part(tree)
    return problems


GOOD = {
    "formats/core/settings.h": "struct Config {\n  Mode mode;  // a; b\n  char output[1024];\n  uint32_t every[kCount];\n};\n",
    "formats/core/settings.def": "read_mode(value, config.mode, reason)\nread(config.output)\n",
    "formats/core/setting_values.cpp": "config.every[0] = 1;\n",
    "formats/core/record.h": "#define GPUPROF_KINDS(RECORDED) \\\n  RECORDED(call, 1, call)  \\\n",
    "tests/unit/formats/core/encode_test.cpp": "Kind::call",
    "formats/exporters.cpp": "{\"a\", write_a},\n",
    "formats/writers/a/a_export.h": "bool write_a(const Trace& trace, const std::string& path, const ExportOptions& options);\n",
    "tools/analysis/tables.h": "struct Tables {\n  std::vector<Row> kernels;  // a\n  std::vector<Row> waits, copies;\n  int n = 0;\n};\n",
    "tools/analysis/tables.cpp": "out_.kernels out_.waits out_.copies",
    "tools/report/report_json.cpp": 'tables.kernels report.tables.waits tables.copies {"name", 1}',
    "tools/report/html/page.js": "const TABLES = [\n  ['kernels', 'Kernels', [['name', 'kernel', 'code'], ['us', `a ${b}`, 'us', true]]],\n];\n"
                                 "row.us = row.ns / 1000;\n",
    "tools/analysis/replay/replay_piece.h": "enum class Fix : uint8_t {\n  none,\n  slow,  // it, too\n};\n"
                                            "constexpr size_t kFixes = static_cast<size_t>(Fix::slow) + 1;\n",
    "tools/analysis/findings.cpp": "void add_slow(Report& report) {\n}\nint make_findings(int one,\n                  int other) {\n  add_slow(report);\n}\n",
    "tools/analysis/findings.h": "int make_findings(int one, int other);\n",
    "tools/analysis/replay/graph.cpp": "Fix::slow",
    "tools/main.cpp": 'kCommands[] = {\n    {"run",\n     run_run},\n};\n',
    "tools/commands/cmd_run.cpp": "int run_run(const Command& command) {}\n",
    "tests/simcuda/core/settings.cpp": 'getenv("SIMCUDA_SEED")',
    "tests/simcuda/unit/a_test.cpp": "SIMCUDA_SEED",
    "preload/apis.def": "GPUPROF_API(cudart, cudaMalloc, alloc)\nGPUPROF_API_AS(cudart, cudaMalloc_ptsz, cudaMalloc, alloc)\n"
                        "GPUPROF_API(nccl, ncclReduce, collective)\nGPUPROF_API_AS(nccl, ncclReduceConfig, later, collective)\n",
    "tools/analysis/ranks/bus_bandwidth.cpp": '{"ncclReduce", 1}',
    "formats/trace/names.cpp": '{"ncclReduce", "reduce"}',
    "tests/programs/a.c": "cudaMalloc(0) ncclReduce ncclReduceConfig",
    "tools/setup.sh": 'packages=(\n  "g++|x"\n  "libfmt-dev|x"\n  "libgtest-dev|x"\n)\n',
    "packaging/third_party.sh": 'components=(\n  "libc6-dev|GNU C library|all|source"\n  "libfmt-dev|fmt|the command|"\n)\n',
    "NOTICE": "GNU C library, fmt\n",
}
SELF_TEST = [  # file, (old, new); what the problem names
    ("NOTICE", ("x", "x"), None),
    ("formats/core/settings.h", ("Mode mode", "Mode more"), "no setting fills the field more"),
    ("formats/core/settings.def", ("config.output", "config.input"), "no setting fills the field output"),
    ("formats/core/setting_values.cpp", ("every", "ever"), "no setting fills the field every"),
    ("tests/unit/formats/core/encode_test.cpp", ("call", "calls"), "record of the kind call"),
    ("formats/core/record.h", ("RECORDED(call", "KEPT(call"), "found no record kind"),
    ("formats/exporters.cpp", ("write_a", "write_b"), "no row for write_a"),
    ("tools/analysis/tables.cpp", ("out_.waits", ""), "nothing fills the table waits"),
    ("tools/report/report_json.cpp", ("tables.copies", ""), "does not write the table copies"),
    ("tools/analysis/tables.h", ("std::vector", "std::map"), "found no table"),
    ("tools/report/report_json.cpp", ("name", "title"), "has a column name, which"),
    ("tools/report/html/page.js", ("row.us", "row.s"), "has a column us, which"),
    ("tools/report/html/page.js", ("TABLES", "ROWS"), "found no column"),
    ("tools/analysis/replay/graph.cpp", ("slow", "fast"), "nothing away for Fix::slow"),
    ("tools/analysis/replay/replay_piece.h", ("Fix::slow", "Fix::none"), "kFixes does not count to Fix::slow"),
    ("tools/analysis/findings.cpp", ("  add_slow(report);", ""), "nothing calls add_slow"),
    ("tools/analysis/findings.h", ("make", "all"), "nothing calls make_findings"),
    ("tools/main.cpp", ('"run"', '"ran"'), "no row for run"),
    ("tests/simcuda/unit/a_test.cpp", ("SEED", "SEAD"), "switch SIMCUDA_SEED"),
    ("tests/simcuda/core/settings.cpp", ("getenv(\"SIMCUDA_SEED\")", ""), "found no SIMCUDA_"),
    ("tests/programs/a.c", ("Malloc", "Mallocs"), "none names cudaMalloc of"),
    ("preload/apis.def", ("GPUPROF_API", "API"), "found no function"),
    ("preload/apis.def", (", collective", ", other"), "found no collective"),
    ("tools/analysis/ranks/bus_bandwidth.cpp", ("Reduce", "AllReduce"), "does not know ncclReduceConfig"),
    ("formats/trace/names.cpp", ("nccl", ""), "does not know ncclReduce"),
    ("packaging/third_party.sh", ("libfmt-dev", "libfmt"), "no row for libfmt-dev"),
    ("tools/setup.sh", ("libfmt-dev", "libfmt9"), "lists libfmt-dev"),
    ("NOTICE", ("fmt", "format"), "does not name fmt"),
]


def self_test():
    wrong = 0
    for file, change, expected in SELF_TEST:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in GOOD.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text.replace(*change) if name == file else text)
            problems = check(root)
        right = any(expected in problem for problem in problems) if expected else not problems
        if not right:
            print(f"{file} with {change!r}: expected {expected or 'no violation'}, got {problems}")
            wrong += 1
    print(f"check_places: self-test, {len(SELF_TEST)} cases, {wrong} wrong")
    return 1 if wrong else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if len(arguments) != 1:
        print(__doc__.strip().splitlines()[-1], file=sys.stderr)
        return 2
    problems = check(pathlib.Path(arguments[0]))
    print("\n".join(problems + [f"check_places: {len(problems)} violations"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
