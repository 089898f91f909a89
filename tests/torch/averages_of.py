# SPDX-License-Identifier: Apache-2.0
"""Runs a script under torch.profiler, with a window between the same steps of its first optimizer as gpuprof has. Leaves
key_averages() of it, by name and by shapes of inputs, as JSON, and the trace; a %r in their names is the rank.

usage: averages_of.py [--cuda] AVERAGES TRACE FIRST ACTIVE SCRIPT ARGUMENT...     --cuda: CUDA's activities, too"""
import collections
import json
import os
import runpy
import sys

import torch
from torch.autograd import DeviceType
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.profiler import ProfilerActivity


def shape_of(shapes):
    return json.dumps(shapes, separators=(",", ":")) if shapes else ""


def is_in_one_of_its_name(event):
    parent = event.cpu_parent
    while parent is not None and parent.name != event.name:
        parent = parent.cpu_parent
    return parent is not None


def outermost(events, with_shape):
    """GPU time of each row without that of calls within one of the same name, which key_averages() adds once more."""
    out = collections.Counter()
    for event in events:
        if event.device_type == DeviceType.CPU and not event.is_async and not is_in_one_of_its_name(event):
            out[event.name, shape_of(event.input_shapes) if with_shape else ""] += event.device_time_total
    return out


def rows_of(averages, events, with_shape):
    gpu_us = outermost(events, with_shape)
    keys = [(row, shape_of(row.input_shapes) if with_shape else "") for row in averages if row.device_type == DeviceType.CPU]
    return [{"name": row.key, "shape": shape, "count": row.count, "cpu_self_us": row.self_cpu_time_total,
             "gpu_us": gpu_us[row.key, shape], "gpu_self_us": row.self_device_time_total} for row, shape in keys]


def main():
    cuda = sys.argv[1] == "--cuda"
    averages, trace, first, active = sys.argv[1 + cuda:5 + cuda]
    sys.argv = sys.argv[5 + cuda:]
    rank = os.environ.get("RANK", "0")

    def keep(profile):
        profile.export_chrome_trace(trace.replace("%r", rank))
        with open(averages.replace("%r", rank), "w", encoding="utf-8") as out:
            json.dump({"name": rows_of(profile.key_averages(), profile.events(), False),
                       "shape": rows_of(profile.key_averages(group_by_input_shape=True), profile.events(), True)}, out)

    leading = []

    def stepped(optimizer, *_):
        if not leading:
            leading.append(optimizer)
        if optimizer is leading[0]:
            profile.step()

    schedule = torch.profiler.schedule(skip_first=int(first) - 1, wait=0, warmup=1, active=int(active), repeat=1)
    activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * cuda
    with torch.profiler.profile(activities=activities, schedule=schedule, record_shapes=True, on_trace_ready=keep) as profile:
        register_optimizer_step_post_hook(stepped)
        runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
