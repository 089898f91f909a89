# SPDX-License-Identifier: Apache-2.0
"""Four steps of operators on lists of tensors. After them, two more under torch.profiler: writes how often it has each
operator with each shapes into the file given, as [[[name, shapes], count], ...]; of "table" by
key_averages(group_by_input_shape=True), of "trace" by its trace, in which a call that holds nothing but one of its own name is
one with it, as key_averages() counts."""
import collections
import json
import sys

import torch

STEPS = 4


def text_of(shapes):
    return json.dumps(shapes, separators=(",", ":"))


def step(weight, optimizer):
    joined = torch.cat([weight, torch.ones(2, 4)], 0)
    stacked = torch.stack([weight, weight, weight])
    alone = torch.cat([weight])
    picked = weight[torch.tensor([0, 1])]
    loss = joined.sum() + stacked.sum() + alone.view([4, 3]).sum() + picked.sum()
    loss.backward()
    optimizer.step()


def counted(events):
    """Without those that are alone within one of their name."""
    children, within, open_ones = collections.Counter(), {}, {}
    operators = sorted((event for event in events if event.get("cat") == "cpu_op"), key=lambda event: (event["ts"], -event["dur"]))
    for number, event in enumerate(operators):
        stack = open_ones.setdefault(event["tid"], [])
        while stack and operators[stack[-1]]["ts"] + operators[stack[-1]]["dur"] <= event["ts"]:
            stack.pop()
        if stack:
            within[number] = stack[-1]
            children[stack[-1]] += 1
        stack.append(number)
    return [event for number, event in enumerate(operators) if number not in within or children[within[number]] > 1
            or operators[within[number]]["name"] != event["name"]]


def main(path):
    weight = torch.nn.Parameter(torch.randn(3, 4))
    optimizer = torch.optim.SGD([weight], lr=0.1, foreach=False)
    for _ in range(STEPS):
        step(weight, optimizer)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as profile:
        for _ in range(STEPS // 2):
            step(weight, optimizer)
    table = collections.Counter()
    for row in profile.key_averages(group_by_input_shape=True):
        table[row.key, text_of(row.input_shapes)] += row.count
    profile.export_chrome_trace(path)
    with open(path, encoding="utf-8") as trace:
        events = json.load(trace)["traceEvents"]
    listed = collections.Counter((event["name"], text_of(event["args"].get("Input Dims", []))) for event in counted(events))
    with open(path, "w", encoding="utf-8") as out:
        json.dump({"table": list(table.items()), "trace": list(listed.items())}, out)


main(sys.argv[1])
