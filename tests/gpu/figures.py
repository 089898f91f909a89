# SPDX-License-Identifier: Apache-2.0
"""Pure functions of the GPU test: what a dump holds, whether two profilers saw the same kernels, and what times of
several rounds say. Tested without a GPU (tests/e2e/command/test_gpu_test.py)."""
import collections
import json
import re
import statistics

import equalities

OF_PYTORCH = {"step", "op", "annotation", "tensor", *equalities.WORK}


class Dump:
    """What the GPU test asks of a dump, from the lines of `gpuprof parse --format json`."""

    def __init__(self, lines):
        self.kinds = collections.Counter()
        self.kernels = collections.Counter()  # by demangled name
        self.launches = self.joined = self.graph_launches = self.from_callback = 0
        self.steps = []
        self.records = []  # of what PyTorch, too, has something to say
        self.losses, self.missing, self.source, self.versions = {}, "", "", {}
        self.events = self.events_timed = 0
        self.attach_s = self.gpu_time_error_us = 0.0
        for line in lines:
            self._add(json.loads(line))

    def _add(self, record):
        kind = record["kind"]
        self.kinds[kind] += 1
        if kind in OF_PYTORCH:
            self.records.append(record)
        if kind == "header":
            self.missing, self.source = record["gpu_times_missing"], record["step_source"]
            self.versions = record["versions"]
        elif kind == "summary":
            self.losses = record.get("losses", {})
            self.attach_s = record.get("cupti_attach_ns", 0) / 1e9
            self.gpu_time_error_us = record.get("gpu_time_error_ns", 0) / 1e3
        elif kind == "step" and record["in_window"]:
            self.steps.append(record["number"])
        elif kind == "gpu_event":
            self.events += 1
            self.events_timed += "no_time" not in record.get("flags", ())
        elif kind == "gpu_kernel":
            self.kernels[record["label"]] += 1
        elif kind == "launch" and record.get("result") == 0 and not record.get("captured"):
            self.from_callback += "from_callback" in record.get("flags", ())
            if "HostFunc" in record["name"]:
                return
            self.launches += 1
            self.graph_launches += "Graph" in record["name"]
            self.joined += "partner" in record


def of_cupti(dump):
    """What a row of the table keeps of a dump for claims.py."""
    return {"attach_s": dump.attach_s, "gpu_time_error_us": dump.gpu_time_error_us, "events": dump.events,
            "events_timed": dump.events_timed, "bad_times": dump.losses.get("bad_timestamp", 0), "cupti": dump.versions.get("cupti", "")}


def of_log(text):
    """What gpuprof's log says of CUPTI: its clock, its functions in use, and whether it gave no record for a second."""
    def last(pattern):
        found = re.findall(pattern, text)
        return {"text": found[-1]} if found else {}

    clock, functions = last(r"CUPTI's clock is (.+)"), last(r"CUPTI's functions in use: (.+)")
    return {"clock": clock.get("text"), "functions": functions.get("text"), "silent": "no GPU record has come for" in text}


def plain(name):
    """A kernel's name without what demanglers write differently."""
    name = re.sub(r"\s+", "", name.replace("(anonymous namespace)", "anonymous"))
    return re.sub(r"\[clone[^\]]*\]", "", name)


def differences(ours, theirs):
    """[(name, our count, their count)] of the kernels on which two profilers do not agree."""
    left, right = collections.Counter(), collections.Counter()
    for counts, into in ((ours, left), (theirs, right)):
        for name, count in counts.items():
            into[plain(name)] += count
    names = sorted(left.keys() | right.keys())
    return [(name, left[name], right[name]) for name in names if left[name] != right[name]]


def median_between(times, first, last):
    """The median of steps first to last, both included; None where there are none."""
    part = times[first:last + 1]
    return statistics.median(part) if part else None


def ratio_row(rounds, mode, base="bare"):
    """How `mode` compares with `base`: a ratio for each round in which both ran, their median, least and most."""
    return spread([r[mode] / r[base] for r in rounds if r.get(mode) and r.get(base)])


def spread(ratios):
    if not ratios:
        return None
    return {"rounds": len(ratios), "median": statistics.median(ratios), "least": min(ratios), "most": max(ratios)}


def window_ratios(times, windows):
    """What a step took in each of `windows`, (first, last), against the median step of the stretches before and after it. The steps
    at a window's ends are left out, and of a stretch its first quarter, in which the window before is written."""
    ends = [(-1, -1), *windows, (len(times), len(times))]
    between = []
    for (_, last), (first, _) in zip(ends, ends[1:]):
        begin = last + 1
        between.append(median_between(times, begin + (first - begin) // 4, first - 6))
    return [median_between(times, first + 1, last - 1) / ((before + after) / 2)
            for (first, last), before, after in zip(windows, between, between[1:])]


def percent(ratio):
    return f"{100 * (ratio - 1):+.2f} %"


def ratio_text(row, of="rounds"):
    if row is None:
        return "not measured"
    return f"{percent(row['median'])} ({percent(row['least'])} to {percent(row['most'])}, {row['rounds']} {of})"


def table(rows):
    """Rows of {part, case, verdict, text} as lines."""
    widths = [max([len(str(r[key])) for r in rows] + [len(key)]) for key in ("part", "case", "verdict")]
    lines = []
    for row in [{"part": "part", "case": "case", "verdict": "verdict", "text": ""}] + rows:
        cells = [str(row[key]).ljust(width) for key, width in zip(("part", "case", "verdict"), widths)]
        lines.append("  ".join(cells + [row["text"]]).rstrip())
    return "\n".join(lines)
