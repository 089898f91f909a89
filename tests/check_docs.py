#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the pages agree with the tree and with the program.

* A link leads to a file that exists, and its anchor to a heading of that file.
* A file or folder that a page names in code exists.
* An option that a page names is one of the command that it stands beside.
* A GPUPROF_* name is a setting, or a test, a script or CMake reads it.
* A command that preloads a library names it by its path: ld.so does not look beside gpuprof for one.
* docs/SETTINGS.md has a row for each setting, with the program's default.
* docs/COMMANDS.md has a section for each command, with a row for each of its options.
* docs/STEPS.md names each step source, docs/VIEWERS.md and docs/COMMANDS.md each format of `convert`, docs/REPORT.md each field of the report.
* tests/simcuda/README.md names each SIMCUDA_* variable that the simulator reads, and no other.
* docs/REPORT.md has a row for each cause and each finding of tools/analysis, and no other. A finding's row has its limits.
* A finding is made in tools/analysis.
* A test names each setting, step source, format, cause and finding.
* Each table of the report's JSON has its place in the page, tools/report/html/page.js, and in the text.
* tests/simcuda reads each field of its Settings from its environment.
* docs/REPORT.md has a row for each cause of a loss, formats/core/ring_file.h, and no other; something counts it.
* formats/FORMAT.md has the number and the name of each record kind of formats/core/record.h.
* A unit test that a page names (`B/tests/unit/<name>`) exists.

usage: check_docs.py REPOSITORY GPUPROF | --self-test
"""
import fnmatch
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from markdown_pages import pages

ROOMS = ("preload/", "collector/", "formats/", "tools/", "tests/", "docs/", "examples/", "cmake/", "packaging/", ".ci/")
# Tables of the report's JSON that are elsewhere: report_html.cpp writes these two, so that they can be read without
# JavaScript; the text has what fits a terminal.
NOT_IN_PAGE = {"findings", "verdict"}
NOT_IN_TEXT = {"curves", "kernel_families", "memory_owners", "modules", "python_stacks", "stragglers", "waiting_lines"}
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z0-9-]*|-[a-zA-Z](?=[\s`]|$))")
FILE = re.compile(r"^[\w./-]+\.(cpp|h|def|py|sh|proto|map|md|txt|json|S|png)$")
# Files that pages name and that come into being elsewhere: outputs, and those of other projects.
OUTPUTS = {"train.py", "report.html", "diff.html", "ltrace.json", "X.json", "cupti.h", "comm.h", "MemoryViz.js"}


def lines_of(text):
    """(number, line, the language of the code block that it is in: "" outside)."""
    language = ""
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip().startswith("```"):
            language = "" if language else line.strip()[3:] or "text"
        else:
            yield number, line, language


def anchors(text):
    """What GitHub makes of a page's headings."""
    found = set()
    for _, line, in_code in lines_of(text):
        match = None if in_code else re.match(r"#+\s+(.*)", line)
        if match:
            title = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", match[1])
            name = re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")
            count, one = 0, name
            while one in found:
                count += 1
                one = f"{name}-{count}"
            found.add(one)
    return found


class Tree:
    """Names of the files in the repository, and what its scripts and sources say."""

    def __init__(self, root):
        self.root = root
        self.files = set()
        for folder, folders, files in os.walk(root):
            folders[:] = [f for f in folders if not f.startswith(("build", ".git", ".deps")) and f != "__pycache__"]
            self.files |= {(pathlib.Path(folder) / file).relative_to(root).as_posix() for file in files}
        self.names = {file.rsplit("/", 1)[-1] for file in self.files}
        self.variables = set()
        for file in self.files:
            if file.endswith((".py", ".sh", ".txt", ".cmake", ".c", ".cpp", ".h")) or file == ".ci/run":
                self.variables |= set(re.findall(r"GPUPROF_[A-Z0-9_]+", (root / file).read_text(errors="replace")))

    def has(self, name):
        """Whether a path or a pattern of one (`cmd_<name>.cpp`, `any_{a,b}.h`, `core/*.h`) is there."""
        pattern = re.escape(name.rstrip("/"))
        pattern = re.sub(r"<\w+>|\\\*|…", "[^/]*", pattern)
        pattern = re.sub(r"\\\{([^}]*)\\\}", lambda m: "(" + m[1].replace(",", "|") + ")", pattern)
        if "/" not in name:
            return any(re.fullmatch(pattern, one) for one in self.names)
        return any(re.match(pattern + "(/|$)", file) or re.search("/" + pattern + "(/|$)", "/" + file)
                   for file in self.files)


class Program:
    """What the command says of itself."""

    def __init__(self, gpuprof, dump=None):
        def run(*arguments):
            return subprocess.run([gpuprof, *arguments], stdout=subprocess.PIPE, check=True, text=True).stdout

        self.options = {}
        for command in re.findall(r"^  ([a-z]+)\s", run("--help"), re.M):
            help_text = run(command, "--help")
            rows = re.findall(r"^  (-[^ ]+)", help_text, re.M)
            self.options[command] = {option for row in rows for option in row.split(",")}
        rows = json.loads(run("config", "--format", "json"))["settings"]
        rows = rows["settings"] if isinstance(rows, dict) else rows
        self.settings = {row["name"]: row for row in rows}
        step = self.settings.get("GPUPROF_STEP", {}).get("allowed", "")
        self.step_sources = {re.match(r"[a-z]+", one.strip())[0] for one in step.split(",") if one.strip()}
        text = run("convert", "--help") if "convert" in self.options else ""
        self.formats = set(re.findall(r"^  ([a-z][a-z-]+)  ", text, re.M))
        report = json.loads(run("report", "--format", "json", dump)) if dump else {}
        self.report_fields = set(report)
        self.report_tables = {name for name, value in report.items() if isinstance(value, list)}


def link_problems(tree, page, text):
    folder = page.rsplit("/", 1)[0] + "/" if "/" in page else ""
    for number, line, in_code in lines_of(text):
        for target in [] if in_code else LINK.findall(re.sub(r"`[^`]*`", "", line)):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            file = os.path.normpath(folder + path) if path else page
            if file not in tree.files and not (tree.root / file).is_dir():
                yield f"{page}:{number}: link to {target}: there is no {file}"
            elif anchor and anchor not in anchors((tree.root / file).read_text(encoding="utf-8")):
                yield f"{page}:{number}: link to {target}: {file} has no heading #{anchor}"


def file_problems(tree, page, text):
    for number, line, in_code in lines_of(text):
        for code in [] if in_code else re.findall(r"`([^`]+)`", line):
            named = code.split(":")[0]
            in_room = named.startswith(ROOMS) and re.fullmatch(r"[\w./<>{},*…-]+", named)
            if (in_room or FILE.match(named)) and named not in OUTPUTS and not named.startswith("/"):
                if not tree.has(named):
                    yield f"{page}:{number}: `{code}`: there is no such file; where has it moved?"


def commands_in(code):
    """(subcommand, its own words) of each `gpuprof COMMAND ...` in a line of code, without the profiled program's."""
    code = re.split(r"\s#\s", code)[0]
    for match in re.finditer(r"(?:^|[\s/(`])gpuprof ([a-z]+)((?:(?! -- )[^|;&)`])*)", code):
        yield match[1], match[2]


def option_problems(program, page, text):
    known = set().union(*program.options.values(), {"--help", "--version", "-h", "-V"})
    for number, line, in_code in lines_of(text):
        if in_code not in ("", "sh"):
            continue
        for code in [line] if in_code else re.findall(r"`([^`]+)`", line):
            for command, rest in commands_in(code):
                if command not in program.options:
                    yield f"{page}:{number}: `{code.strip()}`: {command} is no command"
                    continue
                for option in OPTION.findall(rest):
                    if option not in program.options[command] | {"--help"}:
                        yield f"{page}:{number}: `{code.strip()}`: gpuprof {command} has no option {option}"
            alone = None if in_code else re.match(r"(--[a-z-]+)( [A-Za-z<]\S*)*$", code)
            if alone and alone[1] not in known and page not in ("tests/bench/README.md",):
                yield f"{page}:{number}: `{code}`: no command has this option; name the program before it"


def setting_problems(tree, program, page, text):
    for number, line in enumerate(text.splitlines(), 1):
        for name in re.findall(r"GPUPROF_[A-Z0-9_]*[A-Z0-9]", line):
            if name not in program.settings and name not in tree.variables:
                yield f"{page}:{number}: {name} is no setting; gpuprof config lists them"


def preload_problems(page, text):
    for number, line in enumerate(text.splitlines(), 1):
        for name in re.findall(r"\bLD_PRELOAD=[\"']?([\w.-]+\.so[\w.]*)(?![\w./-])", line):
            yield f"{page}:{number}: LD_PRELOAD={name}: ld.so finds no bare name there; write LD_PRELOAD=$(gpuprof lib)"


def rows_of_settings(text):
    """Name -> default of each row of the table in docs/SETTINGS.md."""
    return {name: default for name, default in re.findall(r"^\| `(GPUPROF_\w+)` \| ([^|]*) \|", text, re.M)}


def completeness(program, texts):
    rows = rows_of_settings(texts.get("docs/SETTINGS.md", ""))
    for name, setting in program.settings.items():
        default = setting["default"]
        told = rows.get(name)
        if told is None:
            yield f"docs/SETTINGS.md: no row for {name}"
        elif told.strip("`") != (default or "none"):
            yield f"docs/SETTINGS.md: the default of {name} is `{default or 'none'}`, not {told}"
    for name in rows.keys() - program.settings.keys():
        yield f"docs/SETTINGS.md: a row for {name}, which is no setting"
    sections = dict(re.findall(r"^## gpuprof (\w+)\n(.*?)(?=^## |\Z)", texts.get("docs/COMMANDS.md", ""), re.M | re.S))
    for command, options in program.options.items():
        if command not in sections:
            yield f"docs/COMMANDS.md: no section \"## gpuprof {command}\""
            continue
        told = set()
        for row in re.findall(r"^\| (`-[^|]*) \|", sections[command], re.M):
            told |= {option for code in re.findall(r"`([^`]+)`", row) for option in OPTION.findall(code)}
        for option in sorted(options - told - {"-h", "--help"}):
            yield f"docs/COMMANDS.md: gpuprof {command}: no row for {option}"
        for option in sorted(told - options):
            yield f"docs/COMMANDS.md: gpuprof {command} has no option {option}"
    for source in sorted(program.step_sources):
        if not re.search(rf"`{source}[:`]", texts.get("docs/STEPS.md", "")):
            yield f"docs/STEPS.md: the step source `{source}` is not told"
    for name in sorted(program.formats):
        if f"`{name}`" not in texts.get("docs/VIEWERS.md", ""):
            yield f"docs/VIEWERS.md: the format `{name}` is not told"
        if not re.search(rf"^\| `--to` \|.*`{name}`", sections.get("convert", ""), re.M):
            yield f"docs/COMMANDS.md: the row of `--to` of gpuprof convert does not name `{name}`"
    for name in sorted(program.report_fields):
        if not re.search(rf"^\|[^|]*`{name}(\[\]|`|\{{|\.)", texts.get("docs/REPORT.md", ""), re.M):
            yield f"docs/REPORT.md: no row for the field `{name}` of the report's JSON"


SIMULATOR, SIMULATOR_SETTINGS = "tests/simcuda/README.md", "tests/simcuda/core/settings.h"


def simulator_problems(root, files, text):
    read = set()
    for file in files:
        if file.startswith("tests/simcuda/") and file.endswith((".cpp", ".h")):
            read |= set(re.findall(r'"(SIMCUDA_[A-Z0-9_]+)"', (root / file).read_text(errors="replace")))
    told = set(re.findall(r"SIMCUDA_[A-Z0-9_]*[A-Z0-9]", text))
    header = (root / SIMULATOR_SETTINGS).read_text() if SIMULATOR_SETTINGS in files else ""
    reader = (root / SIMULATOR_SETTINGS.replace(".h", ".cpp")).read_text() if header else ""
    body = re.search(r"^struct Settings \{(.*?)^\};", header, re.M | re.S)
    for field in re.findall(r"(\w+)(?: = [^;]*)?;", re.sub(r"//[^\n]*", "", body[1])) if body else []:
        if not re.search(rf"\b(?:s\.|->){field}\b", reader):
            yield f"{SIMULATOR_SETTINGS}: nothing reads the field {field} from the environment"
    for name in sorted(read - told):
        yield f"{SIMULATOR}: {name} is not told"
    for name in sorted(told - read):
        yield f"{SIMULATOR}: the simulator does not read {name}"


def section(text, heading):
    """What stands below a heading of a page, up to the next one of its level."""
    match = re.search(rf"^(#+) {re.escape(heading)}.*?\n(.*?)(?=^#{{1,2}} |\Z)", text, re.M | re.S)
    return match[2] if match else ""


def names_in_table(text):
    return set(re.findall(r"^\| `([a-z_]+)` \|", text, re.M))


def tests_of(root, files):
    """What all tests say; their tables of texts (.md) do not count."""
    return "\n".join((root / file).read_text(errors="replace") for file in sorted(files)
                     if file.startswith("tests/") and file.endswith((".cpp", ".py", ".c")) and "/check_" not in file)


def untested(tests, what, names, pattern):
    for name in sorted(names):
        if not re.search(pattern.replace("{}", re.escape(name)), tests):
            yield f"tests: none names the {what} `{name}`"


def test_problems(root, files, program):
    tests = tests_of(root, files)
    yield from untested(tests, "setting", program.settings, r"\b{}\b")
    yield from untested(tests, "step source", program.step_sources, r"[\"']{}[:\"']")
    yield from untested(tests, "format", program.formats, r"[\"']{}[\"']")


PAGE, TEXT = "tools/report/html/page.js", "tools/report/*_text.cpp"


def table_problems(root, files, program):
    page = (root / PAGE).read_text() if PAGE in files else ""
    text = "".join((root / file).read_text() for file in sorted(files) if fnmatch.fnmatch(file, TEXT))
    for name in sorted(program.report_tables):
        if not re.search(rf"\b{name}\b", page) and name not in NOT_IN_PAGE:
            yield f"{PAGE}: does not show the table `{name}` of the report's JSON"
        if not re.search(rf"\b(?:add_)?{name}\b", text) and name not in NOT_IN_TEXT:
            yield f"{TEXT}: does not show the table `{name}` of the report's JSON"


FINDINGS = "tools/analysis/findings.def"


def analysis_problems(root, files, text):
    """Causes and findings: what the sources name against the tables of docs/REPORT.md."""
    source = "".join((root / file).read_text(errors="replace") for file in sorted(files)
                     if re.fullmatch(r"tools/analysis/[\w/]+\.(cpp|h|def)", file))
    table = (root / FINDINGS).read_text() if FINDINGS in files else ""
    findings = {name: re.findall(r'LIMIT\((\d+), "([^"]+)"\)', row)
                for name, row in re.findall(r"^GPUPROF_FINDING\((\w+),(.*)", table, re.M)}
    named = {"cause": set(re.findall(r'Cause::\w+,\s*"([a-z_]+)"', source)),
             "finding": set(findings)}
    told = {"cause": names_in_table(section(text, "What a fix would save")),
            "finding": names_in_table(section(text, "Findings"))}
    rows = dict(re.findall(r"^\| `([a-z_]+)` \| (.*)", section(text, "Findings"), re.M))
    for name, limits in findings.items():
        for value, unit in limits:
            if name in rows and f"{value} {unit}" not in rows[name]:
                yield f"docs/REPORT.md: the row of the finding `{name}` does not have its limit, {value} {unit}"
        if f"FindingKind::{name}>" not in source:
            yield f"{FINDINGS}: no add_finding<FindingKind::{name}> makes this finding"
    tests = tests_of(root, files)
    for what, names in named.items():
        yield from untested(tests, what, names, rf"(?:Cause|FindingKind)::{{}}\b|[\"'`]{{}}[\"'`]")
        if not names:
            yield f"tools/analysis: found no {what}; how are they written now?"
        for name in sorted(names - told[what] - {"compute"}):
            yield f"docs/REPORT.md: no row for the {what} `{name}`"
        for name in sorted(told[what]):
            if name not in names:
                yield f"docs/REPORT.md: a row for the {what} `{name}`, which tools/analysis does not name"


def loss_problems(root, files, text):
    header = "formats/core/ring_file.h"
    match = re.search(r"^enum class Loss[^{]*\{(.*?)^\};", (root / header).read_text() if header in files else "", re.M | re.S)
    causes = re.findall(r"^\s*(\w+) = \d+", match[1] if match else "", re.M)
    if not causes:
        yield f"{header}: found no cause of a loss; how are they written now?"
    code = "".join((root / file).read_text(errors="replace") for file in sorted(files)
                   if file == header or re.fullmatch(r"collector/[\w/]+\.cpp", file) and not file.endswith("/summary.cpp"))
    told = names_in_table(section(text, "Losses"))
    for name in causes:
        if name not in told:
            yield f"docs/REPORT.md: no row for the loss `{name}`"
        if not re.search(rf"\bLoss::{name}\b", code):
            yield f"{header}: nothing counts Loss::{name}"
    for name in sorted(told - set(causes)):
        yield f"docs/REPORT.md: a row for the loss `{name}`, which {header} does not have"


def kind_problems(record, text):
    kinds = re.findall(r"^\s*(?:RECORDED|RING|OUTSIDE)\((\w+), (\d+)", record, re.M)
    if not kinds:
        yield "formats/core/record.h: found no record kind; how are they written now?"
    without_table = " ".join(re.findall(r"Kinds? [^(\n]*|kind \d+", text))
    for name, number in kinds:
        if not re.search(rf"\b{number} {name}\b", text) and \
                not re.search(rf"\b{number}\b", without_table):
            yield f"formats/FORMAT.md: the record kind {number} {name} is not told"


TABLES = "tools/parquet/schema.def"
COLUMN_TYPES = {"id": "int64", "time": "int64", "serial": "int32", "real": "double", "flag": "boolean"}


def parquet_problems(schema, queries, text):
    """The page of the exported tables has each column with its type, unit and source, and each query."""
    macros = dict(re.findall(r"TABLE\((\w+), \w+, (GPUPROF_\w+)\)", schema))
    if not macros:
        yield f"{TABLES}: found no table; how are they written now?"
    for table, macro in macros.items():
        body = re.search(rf"#define {macro}\(COLUMN\)(.*?)(?:\n\n|\Z)", schema, re.S)
        columns = re.findall(r'COLUMN\((\w+), (\w+), "([^"]*)",[\s\\]*"([^"]*)"\)', body[1] if body else "")
        wanted = [f"| `{name}` | {COLUMN_TYPES.get(kind, kind)} | {unit} | {source} |" for name, kind, unit, source in columns]
        part = re.search(rf"^### {table}\n(.*?)(?=^##|\Z)", text, re.M | re.S)
        told = re.findall(r"^\| `.*", part[1] if part else "", re.M)
        for row in wanted:
            if row not in told:
                yield f"docs/PARQUET.md: the table {table} lacks the row {row}"
        for row in told:
            if row not in wanted:
                yield f"docs/PARQUET.md: the table {table} has the row {row}, which {TABLES} does not have"
    names = set(re.findall(r"^QUERY\((\w+)\)", queries, re.M))
    for name in sorted(names ^ names_in_table(section(text, "Queries"))):
        yield f"docs/PARQUET.md: the query `{name}` is told, or in tools/sql/queries.def, but not both"


def unit_test_problems(tree, page, text):
    for number, line in enumerate(text.splitlines(), 1):
        for name in re.findall(r"\bB/tests/unit/(\w+)", line):
            if not tree.has(f"{name}.cpp"):
                yield f"{page}:{number}: there is no unit test {name}"


def check(root, program):
    tree = Tree(root)
    texts = {page: (root / page).read_text(encoding="utf-8") for page in pages(root)}
    problems = []
    for page, text in texts.items():
        problems += link_problems(tree, page, text)
        problems += file_problems(tree, page, text)
        problems += option_problems(program, page, text)
        problems += setting_problems(tree, program, page, text)
        problems += preload_problems(page, text)
        problems += unit_test_problems(tree, page, text)
    problems += analysis_problems(root, tree.files, texts.get("docs/REPORT.md", ""))
    record = root / "formats/core/record.h"
    problems += loss_problems(root, tree.files, texts.get("docs/REPORT.md", ""))
    problems += kind_problems(record.read_text() if record.exists() else "", texts.get("formats/FORMAT.md", ""))
    if "docs/PARQUET.md" in texts:
        problems += parquet_problems((root / TABLES).read_text(), (root / "tools/sql/queries.def").read_text(), texts["docs/PARQUET.md"])
    problems += test_problems(root, tree.files, program)
    problems += table_problems(root, tree.files, program)
    problems += simulator_problems(root, tree.files, texts.get(SIMULATOR, ""))
    return len(texts), problems + list(completeness(program, texts))


FAKE = r"""#!/bin/sh
case "$*" in
  --help) printf '  run      run -- COMMAND\n  convert  convert INPUT\n' ;;
  'run --help') printf '  --step  what marks a step\n  -o,--output  a folder\n' ;;
  'convert --help') printf '  --to  a format\n\nFormats:\n  perfetto  one file\n' ;;
  report*) printf '{"steps":[],"gpu":{}}' ;;
  config*) printf '{"settings":[{"name":"GPUPROF_STEP","default":"auto","allowed":"auto, graph:N"}]}' ;;
esac
"""
GOOD = {
    "README.md": "# Top\n\n[here](docs/STEPS.md#some-steps) and [up](#top), `--step`, `tools/a.cpp`, `a.cpp`, `tools/*.cpp`\n\n"
                 "```sh\ngpuprof run --step graph:1 -- ./a.out --other\nGPUPROF_STEP=auto x\n```\n",
    "docs/STEPS.md": "# Some steps\n\n`auto`, `graph:N`\n",
    "docs/VIEWERS.md": "`perfetto`\n",
    "docs/SETTINGS.md": "| `GPUPROF_STEP` | `auto` | |\n",
    "docs/COMMANDS.md": "## gpuprof run\n\n| `--step` | a |\n| `-o`, `--output` | a |\n\n## gpuprof convert\n\n| `--to` | `perfetto` |\n",
    "docs/REPORT.md": "| `steps[]` | |\n| `gpu` | |\n\n## Losses\n\n| `full` | |\n\n"
                      "## What a fix would save\n\n| `slow` | |\n\n## Findings\n\n| `drift` | 5 % |\n",
    "formats/core/ring_file.h": "enum class Loss : uint8_t {\n  full = 0,  // records\n};\n",
    "collector/record/ring.cpp": "count_loss(Loss::full)",
    "tools/analysis/a.cpp": '{Cause::slow, "slow"}, add_finding<FindingKind::drift>(out)',
    "tools/analysis/findings.def": 'GPUPROF_FINDING(drift, LIMIT(5, "%"), NO_LIMIT,\n    "it drifts")\n',
    "tests/unit/a_test.cpp": "FindingKind::drift",
    "formats/core/record.h": "#define GPUPROF_KINDS(RECORDED, RING, OUTSIDE) \\\n  RECORDED(call, 1, call)  \\\n  OUTSIDE(other, 19)\n",
    "formats/FORMAT.md": "| 1 call | |\n\nKinds 18 and 19 (others)\n",
    "tools/a.cpp": "",
    "docs/PARQUET.md": "### work\n\n| `a_ns` | int64 | ns | a time |\n\n## Queries\n\n| `slow` | |\n",
    "tools/parquet/schema.def": "#define GPUPROF_WORK(COLUMN) \\\n  COLUMN(a_ns, time, \"ns\", \"a time\")\n\n"
                                "#define GPUPROF_TABLES(TABLE) \\\n  TABLE(work, Work, GPUPROF_WORK)\n",
    "tools/sql/queries.def": "QUERY(slow)\n",
    "tools/report/html/page.js": "['steps', 'Steps']",
    "tools/report/report_text.cpp": "report.steps",
    "tests/unit/b_test.cpp": "\"slow\" GPUPROF_STEP \"auto\" \"graph:1\" \"perfetto\"",
    "tests/simcuda/core/settings.h": "struct Settings {\n  int seed = 1;  // a number\n};\n",
    "tests/simcuda/README.md": "| `SIMCUDA_SEED` | |\n",
    "tests/simcuda/core/settings.cpp": "s.seed = getenv(\"SIMCUDA_SEED\")",
}
SELF_TEST = [  # file, what is added to it, or (old, new); what the problem names
    ("README.md", "", None),
    ("README.md", "[x](docs/NONE.md)", "docs/NONE.md"),
    ("README.md", "[x](docs/STEPS.md#other)", "#other"),
    ("README.md", "[x](https://example.org/a#b)", None),
    ("README.md", "`tools/gone.cpp`", "tools/gone.cpp"),
    ("README.md", "`gone.cpp`", "gone.cpp"),
    ("README.md", "`gpuprof convert x --step`", "--step"),
    ("README.md", "`gpuprof wrong x`", "wrong"),
    ("README.md", "`--wrong`", "--wrong"),
    ("README.md", "```sh\ngpuprof wrong\n```", "wrong"),
    ("README.md", "```\nthe gpuprof command\n```", None),
    ("README.md", "`GPUPROF_STOP=1`", "GPUPROF_STOP"),
    ("README.md", "```sh\nLD_PRELOAD=liba.so.1 ./x\n```", "LD_PRELOAD=liba.so.1"),
    ("README.md", "```sh\nLD_PRELOAD=B/liba.so LD_PRELOAD=$(pwd)/liba.so ./x\n```", None),
    ("docs/SETTINGS.md", ("`auto`", "`manual`"), "default of GPUPROF_STEP"),
    ("docs/SETTINGS.md", ("STEP", "STOP"), "no row for GPUPROF_STEP"),
    ("docs/COMMANDS.md", ("| `--to` | `perfetto` |\n", ""), "no row for --to"),
    ("docs/COMMANDS.md", ("`perfetto`", "`xplane`"), "does not name `perfetto`"),
    ("docs/COMMANDS.md", ("`--to`", "`--to`, `--from`"), "no option --from"),
    ("docs/COMMANDS.md", ("gpuprof run", "gpuprof ran"), "no section"),
    ("docs/STEPS.md", (", `graph:N`", ""), "`graph`"),
    ("docs/VIEWERS.md", ("`perfetto`", ""), "`perfetto`"),
    ("docs/REPORT.md", ("| `gpu` | |", "gpu"), "`gpu`"),
    ("docs/REPORT.md", ("`slow`", "`fast`"), "no row for the cause `slow`"),
    ("docs/REPORT.md", "| `gone` | |", "finding `gone`, which"),
    ("docs/REPORT.md", ("`full`", "`fall`"), "no row for the loss `full`"),
    ("docs/REPORT.md", ("`full`", "`fall`"), "a row for the loss `fall`, which"),
    ("formats/core/ring_file.h", ("full", "empty"), "nothing counts Loss::empty"),
    ("formats/core/ring_file.h", ("enum class Loss", "enum class Lost"), "found no cause of a loss"),
    ("tools/analysis/a.cpp", ("drift", "drafts"), "makes this finding"),
    ("tools/analysis/findings.def", "GPUPROF_FINDING(drafts, NO_LIMIT", "no row for the finding `drafts`"),
    ("tools/analysis/findings.def", ("5", "6"), "does not have its limit, 6 %"),
    ("tools/analysis/findings.def", ("GPUPROF_", ""), "found no finding"),
    ("tests/unit/a_test.cpp", ("drift", "drafts"), "none names the finding `drift`"),
    ("tests/unit/b_test.cpp", ("slow", "fast"), "none names the cause `slow`"),
    ("tests/unit/b_test.cpp", ("GPUPROF_STEP", ""), "none names the setting `GPUPROF_STEP`"),
    ("tests/unit/b_test.cpp", ("graph:1", ""), "none names the step source `graph`"),
    ("tests/unit/b_test.cpp", ("perfetto", ""), "none names the format `perfetto`"),
    ("tools/report/html/page.js", ("steps", "stops"), "does not show the table `steps`"),
    ("tools/report/report_text.cpp", ("steps", "stops"), "_text.cpp: does not show the table `steps`"),
    ("tests/simcuda/core/settings.cpp", ("s.seed", "seed"), "nothing reads the field seed"),
    ("tools/analysis/a.cpp", ("Cause::", ""), "found no cause"),
    ("formats/FORMAT.md", ("1 call", "1 calls"), "1 call is not told"),
    ("formats/FORMAT.md", ("19", "20"), "19 other is not told"),
    ("README.md", "`B/tests/unit/a_test`", None),
    ("README.md", "`B/tests/unit/c_test --gtest_filter=*X*`", "no unit test c_test"),
    ("tests/simcuda/README.md", ("SEED", "SEAD"), "SIMCUDA_SEED is not told"),
    ("docs/PARQUET.md", ("a time", "some time"), "the table work lacks the row | `a_ns`"),
    ("docs/PARQUET.md", ("| ns |", "| us |"), "the table work has the row | `a_ns` | int64 | us"),
    ("tools/parquet/schema.def", ("time,", "real,"), "lacks the row | `a_ns` | double"),
    ("tools/parquet/schema.def", ("TABLE(work", "TABEL(work"), "found no table"),
    ("docs/PARQUET.md", ("`slow`", "`fast`"), "the query `slow`"),
    ("tools/sql/queries.def", "QUERY(more)", "the query `more`"),
    ("tests/simcuda/README.md", "`SIMCUDA_MORE`", "does not read SIMCUDA_MORE"),
]


def self_test():
    wrong = 0
    for file, change, expected in SELF_TEST:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            texts = dict(GOOD)
            texts[file] = texts[file].replace(*change) if isinstance(change, tuple) else texts[file] + change + "\n"
            for name, text in texts.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            (root / "fake").write_text(FAKE)
            (root / "fake").chmod(0o700)
            _, problems = check(root, Program(str(root / "fake"), root / "dump"))
        right = any(expected in problem for problem in problems) if expected else not problems
        if not right:
            print(f"{file} with {change!r}: expected {expected or 'no violation'}, got {problems}")
            wrong += 1
    print(f"check_docs: self-test, {len(SELF_TEST)} cases, {wrong} wrong")
    return 1 if wrong else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if len(arguments) != 2:
        print(__doc__.strip().splitlines()[-1], file=sys.stderr)
        return 2
    root = pathlib.Path(arguments[0])
    files, problems = check(root, Program(arguments[1], root / "tests/golden/version1.gpuprof"))
    print("\n".join(problems + [f"check_docs: {files} pages, {len(problems)} violations"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
