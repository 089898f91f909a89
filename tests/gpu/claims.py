# SPDX-License-Identifier: Apache-2.0
"""What NVIDIA's documents say, what the simulated CUPTI does by default, and what was seen here: where the last two
differ the simulator is wrong. Pure functions over the rows of the table; sources stand in tests/simcuda/README.md."""


def of(rows, part, *cases):
    """The numbers of these cases that were run to their end."""
    found = {row["case"]: row["numbers"] for row in rows if row["part"] == part and row["verdict"] in ("ok", "DIFFERS", "OVER")}
    return [found[case] for case in cases if found.get(case)]


def share(numbers, key):
    """How many of the launches of graphs have it, in words; None where there were none."""
    launches = sum(n["launches"] for n in numbers)
    if not launches:
        return None
    count = sum(n[key] for n in numbers)
    return "all" if count >= launches else "none" if count == 0 else f"{count} of {launches}"


def late_nodes(rows):
    numbers = of(rows, "graphs", "before-node", "before-auto", "before-updated-node", "before-destroyed-node")
    return share([{"launches": n["launches"], "timed": n["launches"] - n["untimed"]} for n in numbers], "timed")


def late_whole(rows):
    return share(of(rows, "graphs", "before-trace", "before-updated-trace", "before-destroyed-trace"), "whole")


def transfers(rows):
    """Copies and sets of graphs of before, beside those of the same graph captured inside."""
    late, seen = of(rows, "graphs", "before-node"), of(rows, "graphs", "inside-node")
    if not late or not seen or "transfers" not in late[0]:
        return None
    return "as copies and sets" if late[0]["transfers"] > 0 else "as kernels" if seen[0]["transfers"] else "none anywhere"


def ids(rows):
    """Correlation ids of graph nodes from the second session on, beside the order of launches."""
    [numbers] = of(rows, "graphs", "three-windows") or [{}]
    agreed, differed = numbers.get("ids_agreed"), numbers.get("ids_differed")
    if agreed is None or agreed + differed == 0:
        return None
    return "right" if differed == 0 else "wrong" if agreed == 0 else f"wrong in {differed} of {agreed + differed}"


def attach(rows):
    times = [row["numbers"]["attach_s"] for row in rows if row["numbers"].get("attach_s")]
    return f"{min(times):.2f} to {max(times):.2f} s" if times else None


def error(rows):
    errors = [row["numbers"]["gpu_time_error_us"] for row in rows if row["numbers"].get("gpu_time_error_us")]
    return f"at most {max(errors):.2f} us off" if errors else None


def bad_times(rows):
    counts = [row["numbers"]["bad_times"] for row in rows if "bad_times" in row["numbers"]]
    return None if not counts else "none" if not sum(counts) else str(sum(counts))


def event_times(rows):
    numbers = [row["numbers"] for row in rows if row["numbers"].get("events")]
    if not numbers:
        return None
    timed, events = sum(n["events_timed"] for n in numbers), sum(n["events"] for n in numbers)
    return "all" if timed == events else f"{timed} of {events}"


def said(key, words=str):
    """What all rows that know it say of it; where they differ, each."""
    def seen(rows):
        found = sorted({words(row["numbers"][key]) for row in rows if row["numbers"].get(key) not in (None, "")})
        return ", ".join(found) or None

    return seen


def cost_after(way):
    """A launch after the second detach, against one before the first attach."""
    def seen(rows):
        [numbers] = of(rows, "after", way) or [{}]
        return f"{numbers['after2'] / numbers['bare']:.2f} times" if numbers.get("bare") else None

    return seen


# What is asked; as documented; as simulated; what was seen, from the rows (None: that was not run).
CLAIMS = [
    ("nodes of graphs instantiated before the attach are recorded", "not excluded (guide 2.3.7.5)", "all", late_nodes),
    ("such graphs are recorded as a whole", "none (guide 2.3.7.5)", "none", late_whole),
    ("their copies and sets are recorded", "as kernels, or not (guide 2.3.7.5)", "as copies and sets", transfers),
    ("correlation ids of graph launches from the second session on", "wrong up to 13.1 (notes 13.1 update 1)", "wrong", ids),
    ("time that an attach takes", "not told", "0.00 to 0.10 s", attach),
    ("a launch after a detach takes", "not told; 10 to 20 % of a training (pytorch 146604)", "1.00 times", cost_after("keep")),
    ("a launch after cuptiFinalize takes", "not told", "1.00 times", cost_after("finalize")),
    ("GPU times without a timestamp callback", "CLOCK_REALTIME, interpolated", "at most 1.00 us off", error),
    ("CUPTI's clock", "CLOCK_REALTIME on Linux (cupti_activity.h)", "CLOCK_REALTIME", said("clock")),
    ("addresses that cuGetProcAddress answers with", "not told", "those of the symbols",
     said("same_addresses", lambda same: "those of the symbols" if same else "others")),
    ("CUPTI's functions in use", "V2 from 13.3 and R610 on (guide 2.4)", "V1", said("functions")),
    ("records come within a second of their launches", "unless work of theirs runs (guide, flushing)", "yes",
     said("silent", lambda silent: "no" if silent else "yes")),
    ("GPU times that are zero or impossible", "none without a callback", "none", bad_times),
    ("times of events on the device", "all, once asked for (notes 13.0)", "all", event_times),
]


def table(rows):
    """The lines of the table."""
    lines = [(claim, documented, simulated, seen(rows) or "not run") for claim, documented, simulated, seen in CLAIMS]
    lines.insert(0, ("", "documented", "simulated", "seen here"))
    widths = [max(len(line[i]) for line in lines) for i in range(4)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)
