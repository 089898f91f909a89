# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a dump of a PyTorch program, as lines of text; none where nothing is. Pure, like figures.py."""
import collections
import dataclasses
import re

import equalities
from figures import differences


@dataclasses.dataclass(frozen=True)
class Expected:
    """What must hold of a program besides steps and operators, which always must."""
    kernels: bool = True  # the same by name and count as torch.profiler's; not where a CUDA graph replays them
    owners: bool = True  # each launch lies within an operator; but for those of CUDA graphs, whose replay is none
    memory: bool = True  # what PyTorch's allocator says; programs without PyTorch have none


# Ranges that compiled code makes under torch.profiler alone.
OF_PROFILER = re.compile(r"## Call CompiledFxGraph|triton_|AOTDispatcher Runtime Wrapper|Pregraph bytecode")


def kernels(dump, theirs):
    differing = differences(dump.kernels, theirs)
    if not differing:
        return []
    name, ours, other = differing[0]
    return [f"{len(differing)} kernel names differ, the first {ours} to {other}: {name[:80]}"]


def graphs(dump):
    """Each launch of a graph has its GPU work, or is said to have none."""
    untimed = dump.losses.get("graph_untimed", 0)
    others = {name: count for name, count in dump.losses.items() if name != "graph_untimed"}
    wrong = [f"losses {others}"] if others else []
    if not dump.graph_launches:
        wrong.append("no launch of a graph")
    if dump.joined + untimed < dump.launches:
        wrong.append(f"{dump.launches - dump.joined} of {dump.launches} launches without GPU work, {untimed} of them said")
    return wrong


def operators(dump, theirs):
    theirs = collections.Counter({name: count for name, count in theirs.items() if not OF_PROFILER.match(name)})
    different = equalities.count_differences(equalities.recorded_operators(dump.records), theirs)
    if not different:
        return []
    name, (ours, other) = sorted(different.items())[0]
    return [f"{len(different)} operators differ, the first {ours} to {other}: {name[:80]}"]


def owners(dump):
    alone = [record for record in equalities.without_owner(dump.records)
             if "GraphLaunch" not in record["name"] and "graph" not in record]
    if not alone:
        return []
    return [f"{len(alone)} launches, copies and kernels belong to no operator, the first: {alone[0]['label'][:80]}"]


def memory(dump, told):
    """`told`: [allocated, most allocated] by step, as PyTorch said it."""
    window = [record for record in equalities.of_kind(dump.records, "step") if record["in_window"]]
    if not window or not told or window[-1]["number"] >= len(told):
        return ["no account of memory to compare with"]
    first = window[0]["number"]
    ours, other_totals = equalities.memory_by_step(dump.records, window, told[first - 1][0] if first else 0)
    wrong = [f"{other_totals} times the allocator's total is not what was given less what was taken back"] if other_totals else []
    for step, mine, theirs in zip(window, ours, told[first:]):
        if list(mine) != list(theirs):
            return [*wrong, f"step {step['number']}: {mine[0]} bytes allocated, at most {mine[1]}; PyTorch {theirs[0]}, {theirs[1]}"]
    return wrong
