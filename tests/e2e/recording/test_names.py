# SPDX-License-Identifier: Apache-2.0
"""Kernels by their short names: no two different ones look alike in any table. The names are those of real traces;
skipped where these are not."""
import json
import re

import harness
import pytest
import test_kineto
import test_real_traces

LEAST_NAMES = 200
pytestmark = pytest.mark.skipif(len(test_real_traces.TRACES) < 10, reason=f"no traces in {test_real_traces.REAL}")


def real_names():
    found = set()
    for path in test_real_traces.TRACES:
        events = test_kineto.load(path)["traceEvents"]
        found |= {e["name"] for e in events if (e.get("cat") or "").lower() == "kernel"}
    return sorted(found)


def trace_of(names, path, length=5):
    """Three steps, each with a launch and a kernel of every name."""
    events = []

    def put(category, name, thread, begin, duration, **args):
        events.append({"ph": "X", "cat": category, "name": name, "pid": 9 if thread == 9 else 0, "tid": thread,
                       "ts": begin, "dur": duration, "args": args})

    for step in range(3):
        begin = 1000 + step * 10_000
        put("user_annotation", f"ProfilerStep#{step}", 9, begin, 8_000)
        for i, name in enumerate(names):
            number = step * len(names) + i + 1
            put("cuda_runtime", "cudaLaunchKernel", 9, begin + 100 + 20 * i, 4, correlation=number)
            put("kernel", name, 7, begin + 110 + 20 * i, length, correlation=number, stream=7, device=0, context=1,
                grid=[8, 1, 1], block=[128, 1, 1])
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return path


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    names = real_names()
    assert len(names) >= LEAST_NAMES
    folder = tmp_path_factory.mktemp("names")
    return names, trace_of(names, folder / "base.json"), trace_of(names, folder / "new.json", length=15)


def rows_of(text, title, figures):
    """The names of a table: after so many figures, with what was wrapped below."""
    lines = iter(text.splitlines())
    assert any(line.startswith(title) for line in lines), text[:500]
    begin = next(lines).rindex("name")
    found = []
    for line in lines:
        if not line.strip() or line.startswith("  and "):
            break
        if line[:begin].strip():
            assert len(line[:begin].split()) >= figures
            found.append(line[begin:])
        else:
            found[-1] += " " + line.strip()
    return [re.sub(r"\s", "", name) for name in found]


@pytest.mark.parametrize("columns", [80, 160])
def test_the_reports_tables(traces, columns):
    names, base, _ = traces
    rows = json.loads(harness.checked("report", base, "--format", "json").out)["kernels"]
    assert {row["name"] for row in rows} == set(names)
    assert len({row["short_name"] for row in rows}) == len(names)
    text = harness.checked("report", base, "--tables", "--top", "0", env=harness.environment(COLUMNS=str(columns))).out
    assert max(map(len, text.splitlines())) <= columns
    shown = rows_of(text, "Kernels that took longest", 4)
    assert len(shown) == len(names) == len(set(shown))
    assert set(shown) == {re.sub(r"\s", "", row["short_name"]) for row in rows}


def test_full_names(traces):
    names, base, _ = traces
    text = harness.checked("report", base, "--tables", "--top", "0", "--full-names").out
    assert all(re.search(r"\s" + re.escape(name) + "$", text, re.M) for name in names)


def test_the_tables_of_diff(traces):
    names, base, new = traces
    found = json.loads(harness.checked("diff", base, new, "--format", "json").out)["changes"]
    kernels = [row for row in found if row["kind"] == "kernel"]
    assert len({row["name"] for row in kernels}) == len({row["short_name"] for row in kernels}) == len(names)
    text = harness.checked("diff", base, new, env=harness.environment(COLUMNS="80")).out
    shown = rows_of(text, "Kernels, in a step", 3)
    assert len(shown) == len(set(shown)) > 1
