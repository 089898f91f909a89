# SPDX-License-Identifier: Apache-2.0
"""What must be the same in a dump of a PyTorch program and in what PyTorch itself says of the same steps: operators,
owners of launches, memory. Pure functions over the records of `gpuprof parse --format json`; also used by tests/torch."""
import collections

CUDA = 1  # c10::DeviceType
WORK = ("launch", "copy", "gpu_kernel", "gpu_copy")


def of_kind(records, *kinds):
    return [record for record in records if record["kind"] in kinds]


def recorded_operators(records):
    """How often each operator, autograd node and range was recorded."""
    return collections.Counter(record["name"] for record in of_kind(records, "op", "annotation"))


def listed_operators(events):
    """The same of the events of a torch.profiler trace."""
    return collections.Counter(event["name"] for event in events if event.get("cat") in ("cpu_op", "user_annotation"))


def count_differences(ours, theirs):
    """{name: (ours, theirs)} where they differ."""
    return {name: (ours[name], theirs[name]) for name in {*ours, *theirs} if ours[name] != theirs[name]}


def owner_of(records):
    """Function that gives the name of the operator that a record belongs to; None: of none."""
    names = {record["index"]: record["name"] for record in of_kind(records, "op")}
    return lambda record: names.get(record.get("operator"))


def without_owner(records):
    """Launches, copies and their GPU work outside all operators."""
    owner = owner_of(records)
    return [record for record in of_kind(records, *WORK) if owner(record) is None]


def memory_by_step(records, steps, level):
    """[(allocated at its end, most allocated in it)] of each of `steps`, from what was given and taken back, beginning with
    `level` bytes; and how many of the allocator's own totals are another sum."""
    tensors = collections.deque(sorted((record for record in of_kind(records, "tensor") if record["device_type"] == CUDA),
                                       key=lambda record: record["begin_mono_ns"]))
    found, other_totals = [], 0
    for step in steps:
        peak = level
        while tensors and tensors[0]["begin_mono_ns"] < step["end_mono_ns"]:
            tensor = tensors.popleft()
            level += tensor["bytes"]
            peak = max(peak, level)
            other_totals += not level == tensor["total_allocated"] <= tensor["total_reserved"]
        found.append((level, peak))
    return found, other_totals
