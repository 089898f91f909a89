# SPDX-License-Identifier: Apache-2.0
"""A torch.profiler trace made from nothing but the simulator's log of what happened: what an analysis says of it
is the truth, by that analysis's own definitions."""
import json
import pathlib
import subprocess

SYNC_NAMES = {"stream_wait_event": "Stream Wait Event", "stream_synchronize": "Stream Sync",
              "event_synchronize": "Event Sync", "context_synchronize": "Context Sync"}
CALL_KINDS = ("launch", "copy", "set", "sync", "event", "stream")
CALL_NS = 20_000  # far more than reading the clock twice takes
CLOCK_NS = 200  # between the simulator's clock and a record's, which is converted
DATA_LOADER = "enumerate(DataLoader)#sim.__next__"


def load(folder, pid):
    lines = (pathlib.Path(folder) / f"truth_{pid}.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines if line.strip()]


def demangled(names):
    names = sorted(names)
    done = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True)
    return dict(zip(names, done.stdout.splitlines()))


class Truth:
    """One process. `steps`: begin and end of each, as recorded (test_truth.py compares them with the program's own
    notes; here the time for which the first one waits for the profiler must not count)."""

    def __init__(self, folder, pid, steps):
        self.lines = load(folder, pid)
        self.pid = pid
        self.steps = steps
        self.begin, self.end = min(steps.values())[0], max(steps.values())[1]
        self.names = demangled({w["name"] for w in self.lines if w["t"] == "gpu" and w["type"] == "kernel"})
        self.calls = [c for c in self.lines if c["t"] == "call" and self.begin <= c["begin"] < self.end]
        self.call_of = {c["corr"]: c for c in self.calls}
        self.work = [w for w in self.lines if w["t"] == "gpu" and w["corr"] in self.call_of]
        self.loads = [d for d in self.lines if d["t"] == "data" and self.begin <= d["begin"] < self.end]
        self.collectives = [c for c in self.lines if c["t"] == "nccl" and "count" in c and self.begin <= c["begin"] < self.end]

    def take_calls_as_recorded(self, records):
        """Times of calls from the records. A hook's record encloses the simulator's call by what the hook takes, a
        callback's lies within it; more than that is what the kernel takes away between two readings of the clock."""
        excess = []
        for record in records:
            call = self.call_of.get(record.get("correlation"))
            if not call or record["kind"] not in CALL_KINDS:
                continue
            early, late = call["begin"] - record["begin_mono_ns"], record["end_mono_ns"] - call["end"]
            if "from_callback" in record["flags"]:
                early, late = -early, -late
            assert early >= -CLOCK_NS and late >= -CLOCK_NS, (record, call)
            excess.append(early + late)
            call["begin"], call["end"] = record["begin_mono_ns"], record["end_mono_ns"]
        assert len(excess) > 100
        assert sorted(excess)[len(excess) // 2] < CALL_NS

    def take_loads_as_recorded(self, records):
        """The same of waits for data: the range around each encloses the program's own two readings of the clock."""
        ranges = [r for r in records if r["kind"] == "nvtx_range" and r["name"] == DATA_LOADER]
        assert len(ranges) == len(self.loads) > 0
        excess = []
        for load, record in zip(self.loads, ranges):
            early, late = load["begin"] - record["begin_mono_ns"], record["end_mono_ns"] - load["end"]
            assert early >= -CLOCK_NS and late >= -CLOCK_NS, (record, load)
            excess.append(early + late)
            load["begin"], load["end"] = record["begin_mono_ns"], record["end_mono_ns"]
        assert sorted(excess)[len(excess) // 2] < CALL_NS

    def name_of(self, work):
        """As Kineto names it; copies of simtrain are between pinned and device memory."""
        if work["type"] == "kernel":
            return self.names[work["name"]]
        if work["type"] == "memset":
            return "Memset (Device)"
        if work["type"] == "sync":
            return SYNC_NAMES[work["name"]]
        ends = {"H": "Pinned", "D": "Device"}
        return f"Memcpy {work['kind']} ({ends[work['kind'][0]]} -> {ends[work['kind'][3]]})"

    def trace(self, rank, ranks, runtime):
        events = [self._slice("user_annotation", f"ProfilerStep#{n}", self.pid, self.pid, begin, end)
                  for n, (begin, end) in self.steps.items()]
        events += [self._slice("user_annotation", "nccl:all_reduce", self.pid, c["tid"], c["begin"], c["end"], **{"External id": i + 1})
                   for i, c in enumerate(self.collectives)]
        events += [self._slice("cpu_op", DATA_LOADER, self.pid, self.pid, load["begin"], load["end"]) for load in self.loads]
        for call in self.calls:
            driver = not call["name"].removeprefix("__").startswith("cuda")
            category = runtime or ("cuda_driver" if driver else "cuda_runtime")
            name = call["name"].removeprefix("__")
            events.append(self._slice(category, name, self.pid, call["tid"], call["begin"], call["end"],
                                      correlation=call["corr"]))
        events += [self._work(work) for work in self.work]
        return {"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": ranks},
                "deviceProperties": [], "traceEvents": events}

    def _work(self, work):
        args = {"stream": work["stream"], "correlation": work["corr"], "device": work["device"], "context": 1}
        category = {"kernel": "kernel", "memcpy": "gpu_memcpy", "memset": "gpu_memset", "sync": "cuda_sync"}[work["type"]]
        row = work["stream"]
        if work["type"] == "kernel":
            call = self.call_of[work["corr"]]
            for i, c in enumerate(self.collectives):
                if call["tid"] == c["tid"] and c["begin"] <= call["begin"] <= c["end"]:
                    args["External id"] = i + 1
        if "bytes" in work:
            args["bytes"] = work["bytes"]
            args["memory bandwidth (GB/s)"] = work["bytes"] / (work["end"] - work["begin"])
        if work["type"] == "sync":
            row += 1000000
            args["cuda_sync_kind"] = SYNC_NAMES[work["name"]]
            record = self._record_of(work)
            if record:
                args.update({"wait_on_stream": record["stream"], "wait_on_cuda_event_id": record["event"],
                             "wait_on_cuda_event_record_corr_id": record["corr"]})
        return self._slice(category, self.name_of(work), work["device"], row, work["begin"], work["end"], **args)

    def _record_of(self, sync):
        """The record of the event that a call waited for: the last one before it."""
        call = self.call_of[sync["corr"]]
        if "event" not in call or not call["name"].endswith(("WaitEvent", "EventSynchronize")):
            return None
        records = [c for c in self.calls if c["name"].startswith("cudaEventRecord") and c["event"] == call["event"]
                   and c["begin"] < call["begin"]]
        return records[-1] if records else None

    @staticmethod
    def _slice(category, name, pid, tid, begin, end, **args):
        return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": begin / 1000,
                "dur": (end - begin) / 1000, "args": args}


def write(folder, truths, runtime=None):
    """A file per rank, as HTA wants them; `runtime`: the category of calls, where it is not today's."""
    folder.mkdir(parents=True)
    for rank, truth in truths.items():
        text = json.dumps(truth.trace(rank, len(truths), runtime), indent=1)
        (folder / f"rank{rank}.json").write_text(text)
