# SPDX-License-Identifier: Apache-2.0
"""A host thread and some GPUs in virtual time, that write torch.profiler's JSON and know what happened. All times in us."""
import json

CUDA = {"launch": "cudaLaunchKernel", "graph": "cudaGraphLaunch", "copy": "cudaMemcpyAsync", "wait": "cudaDeviceSynchronize",
        "malloc": "cudaMalloc", "calls": "cuda_runtime", "kernels": "kernel"}
HIP = {**CUDA, "launch": "hipLaunchKernel", "graph": "hipGraphLaunch", "copy": "hipMemcpyAsync", "wait": "hipDeviceSynchronize"}
MTIA = {**CUDA, "launch": "runFunction - job_prep_and_submit_for_execution", "calls": "mtia_runtime", "kernels": "mtia_ccp_events"}
XPU = {**CUDA, "launch": "urEnqueueKernelLaunch", "copy": "urEnqueueUSMMemcpy", "wait": "urQueueFinish", "calls": "xpu_runtime"}
LATENCY = 4.0
RANK_CORRELATIONS = 100_000


class Machine:
    def __init__(self, names=CUDA, rank=None, world=None):
        self.names, self.rank, self.world = names, rank, world
        self.pid, self.now = 100 + (rank or 0), 1_000_000.0
        self.correlation = self.pid * RANK_CORRELATIONS
        self.events, self.work, self.steps, self.free = [], [], [], {}

    def event(self, category, name, row, begin, length, **args):
        pid = args.get("device", self.pid)
        self.events.append({"ph": "X", "cat": category, "name": name, "pid": pid, "tid": row, "ts": round(begin, 3),
                            "dur": round(length, 3), "args": args})

    def call(self, what, length):
        self.correlation += 1
        self.event(self.names["calls"], self.names[what], self.pid, self.now, length, correlation=self.correlation)
        self.now += length

    def run(self, category, name, length, device=0, stream=7, after=0.0, end=None, **args):
        """Work of the call that is made now; `end`: of a collective that ends on all ranks together."""
        begin = max(self.now + LATENCY, self.free.get((device, stream), 0), after)
        length = length if end is None else end - begin
        self.event(category, name, stream, begin, length, device=device, stream=stream, context=1,
                   correlation=self.correlation + 1, **args)
        self.work.append((begin, begin + length))
        self.free[(device, stream)] = begin + length
        return begin + length

    def kernel(self, name, length, host=6.0, **where):
        end = self.run(self.names["kernels"], name, length, grid=[1000, 1, 1], block=[256, 1, 1], **where)
        self.call("launch", host)
        return end

    def graph(self, kernels, host=30.0):
        for name, length in kernels:
            self.run(self.names["kernels"], name, length, grid=[100, 1, 1], block=[256, 1, 1])
        self.call("graph", host)

    def copy(self, kind, size, length, blocking=False):
        end = self.run("gpu_memcpy", f"Memcpy {kind}", length, bytes=size)
        self.call("copy", end + 2 - self.now if blocking else 5.0)

    def wait(self):
        self.call("wait", max(0.0, max(self.free.values()) - self.now) + 3)

    def host(self, length, operator=None):
        if operator:
            self.event("cpu_op", operator, self.pid, self.now, length)
        self.now += length

    def step(self, body, marked=True):
        begin = self.now
        body()
        self.steps.append((begin, self.now))
        if marked:
            self.event("user_annotation", f"ProfilerStep#{len(self.steps) - 1}", self.pid, begin, self.now - begin)

    def busy_pct(self):
        """Of all steps, by an own union of the work."""
        at, last = self.steps[0][0], self.steps[-1][1]
        whole, busy = last - at, 0.0
        for begin, end in sorted(self.work):
            begin, end = max(begin, at), min(end, last)
            if begin < end:
                busy, at = busy + end - begin, end
        return 100 * busy / whole

    def write(self, path, keep=lambda event: True):
        document = {"schemaVersion": 1, "traceEvents": [event for event in self.events if keep(event)]}
        if self.rank is not None:
            document["distributedInfo"] = {"backend": "nccl", "rank": self.rank, "world_size": self.world}
        path.write_text(json.dumps(document))
        return path
