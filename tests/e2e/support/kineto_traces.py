# SPDX-License-Identifier: Apache-2.0
"""Makes Kineto traces of which the contents are known: what torch.profiler writes for a training loop."""
import json
import random


class Trace:
    """One rank's. `events` are in file order; `counts` says how many of each category there are."""

    def __init__(self, rank=0, world=1, old=False, seed=1):
        self.rank, self.world, self.old = rank, world, old
        self.random = random.Random(seed * 1000 + rank)
        self.base = 1_700_000_000_000_000_000 // (7_889_238 * 10**9) * (7_889_238 * 10**9)
        self.pid, self.thread, self.backward = 4000 + rank, 4000 + rank, 4100 + rank
        self.now = 5_000_000_000  # ns from base
        self.correlation, self.external = 100, 1
        self.events, self.times = [], {}
        self.counts = {}

    CATEGORIES = {"cpu_op": "Operator", "cuda_runtime": "Runtime", "kernel": "Kernel", "gpu_memcpy": "Memcpy",
                  "gpu_memset": "Memset", "user_annotation": "Operator", "ac2g": "async"}

    def microseconds(self, ns):
        if self.old:
            return (self.base + ns) // 1000
        return float(f"{ns // 1000}.{ns % 1000:03}")

    def put(self, phase, category, name, pid, tid, begin, length=None, **args):
        self.counts[category] = self.counts.get(category, 0) + 1
        event = {"ph": phase, "cat": self.CATEGORIES.get(category, category) if self.old else category, "name": name,
                 "pid": pid, "tid": (f"stream {tid}" if self.old and pid == 0 else tid), "ts": self.microseconds(begin)}
        if length is not None:
            event["dur"] = self.microseconds(begin + length) - event["ts"] if self.old else self.microseconds(length)
        event["args"] = args
        self.events.append(event)

    def operator(self, name, begin, length, thread=None, **args):
        self.external += 1
        self.put("X", "cpu_op", name, self.pid, thread or self.thread, begin, length,
                 **{"External id": self.external, "Record function id": 0, "Ev Idx": self.external, **args})
        return self.external

    def launch(self, call, category, name, external, stream=7, length=20_000, **args):
        self.correlation += 1
        key = "external id" if self.old else "External id"
        begin = self.now
        self.put("X", "cuda_runtime", call, self.pid, self.thread, begin, 6_000 + self.random.randrange(999),
                 **{key: external, "cbid": 211, "correlation": self.correlation})
        self.flow("s", self.pid, self.thread, begin)
        start = begin + 9_000 + self.random.randrange(999)
        self.put("X", category, name, 0, stream, start, length,
                 **{key: external, "device": 0, "context": 1, "stream": stream, "correlation": self.correlation, **args})
        self.flow("f", 0, stream, start)
        self.now += 10_000

    def flow(self, phase, pid, tid, begin):
        event = {"ph": phase, "id": self.correlation, "pid": pid, "tid": tid, "ts": self.microseconds(begin),
                 "cat": "async" if self.old else "ac2g", "name": "ac2g"}
        if phase == "f":
            event["bp"] = "e"
        self.counts["ac2g"] = self.counts.get("ac2g", 0) + 1
        self.events.append(event)

    def step(self, number, layers=4):
        begin = self.now
        total = 0
        for layer in range(layers):
            op_begin = self.now
            external = self.operator("aten::linear", op_begin, 40_000, **{
                "Input Dims": [[32, 1024], [1024, 1024], []], "Input type": ["c10::Half", "c10::Half", ""],
                "Sequence number": layer, "Fwd thread id": 0, "Concrete Inputs": ["", "", str(layer)]})
            self.launch("cudaLaunchKernel", "kernel", f"gemm<{layer}>(float*)", external,
                        **{"queued": 0, "registers per thread": 168, "shared memory": 49152, "blocks per SM": 1.5,
                           "warps per SM": 12.0, "grid": [132, 2, 1], "block": [256, 1, 1],
                           "est. achieved occupancy %": 19})
            total += 4096
            self.put("i", "cpu_instant_event", "[memory]", self.pid, self.thread, self.now, None, **{
                "Total Reserved": 1 << 20, "Total Allocated": total, "Bytes": 4096, "Addr": 0x7f00_0000_0000 + total,
                "Device Id": 0, "Device Type": 1})
            self.now = op_begin + 45_000
        self.launch("cudaMemcpyAsync", "gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", self.external, bytes=4096)
        self.launch("cudaMemsetAsync", "gpu_memset", "Memset (Device)", self.external, bytes=64)
        self.put("X", "cuda_runtime", "cudaDeviceSynchronize", self.pid, self.thread, self.now, 5_000,
                 **{"cbid": 165, "correlation": 0})
        self.now += 50_000
        self.external += 1
        self.put("X", "user_annotation", f"ProfilerStep#{number}", self.pid, self.thread, begin, self.now - begin,
                 **{"External id": self.external})
        self.now += 1_000

    def document(self):
        top = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100", "numSms": 132}]}
        if not self.old:
            top["distributedInfo"] = {"backend": "nccl", "rank": self.rank, "world_size": self.world}
            top["baseTimeNanoseconds"] = self.base
        top["traceEvents"] = [{"name": "process_name", "ph": "M", "ts": 0, "pid": pid, "tid": 0,
                               "args": {"name": "python"}} for pid in (self.pid, 0)] + self.events
        return top

    def text(self):
        return json.dumps(self.document(), indent=1)


def training(rank=0, world=1, steps=5, old=False):
    trace = Trace(rank, world, old)
    for number in range(steps):
        trace.step(number + 3)
    return trace
