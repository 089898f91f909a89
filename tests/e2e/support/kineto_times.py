# SPDX-License-Identifier: Apache-2.0
"""Kineto traces of which each event has the times that a test gives it, in us. Steps of 20 ms begin at begin_of()."""
import json

STEP = 20_000
ALLREDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
DEVICE = {"name": "NVIDIA A100", "totalGlobalMem": 80 << 30, "computeMajor": 8, "computeMinor": 0, "numSms": 108,
          "maxThreadsPerBlock": 1024, "regsPerMultiprocessor": 65536, "warpSize": 32}


def begin_of(step, every=STEP):
    return 1000 + step * every


class Times:
    """One process."""

    def __init__(self, rank=None, world=1, pid=None, gpus=1):
        self.pid = 100 + (rank or 0) if pid is None else pid
        self.events, self.correlation, self.world = [], 0, world
        self.head = {"schemaVersion": 1, "deviceProperties": [{"id": gpu, **DEVICE} for gpu in range(gpus)]}
        if rank is not None:
            self.head["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": world}

    def event(self, category, name, begin, length, thread=1, pid=None, **args):
        self.events.append({"ph": "X", "cat": category, "name": name, "pid": self.pid if pid is None else pid, "tid": thread,
                            "ts": begin, "dur": length, "args": args})

    def step(self, number, begin, length=STEP):
        self.event("user_annotation", f"ProfilerStep#{number}", begin, length)

    def loading(self, begin, length):
        self.event("user_annotation", LOADER, begin, length)

    def call(self, name, begin, length, thread=1, correlation=None):
        if correlation is None:
            correlation = self.correlation = self.correlation + 1
        self.event("cuda_runtime", name, begin, length, thread, cbid=1, correlation=correlation)
        return correlation

    def wait(self, begin, end):
        self.call("cudaStreamSynchronize", begin, end - begin)

    def on_gpu(self, category, name, correlation, begin, length, stream=7, gpu=0, **args):
        self.event(category, name, begin, length, stream, gpu, device=gpu, stream=stream, context=1, correlation=correlation, **args)

    def kernel(self, name, called, begin, length, stream=7, gpu=0, thread=1, grid=1024, **args):
        correlation = self.call("cudaLaunchKernel", called, 5, thread)
        self.on_gpu("kernel", name, correlation, begin, length, stream, gpu, grid=[grid, 1, 1], block=[256, 1, 1], **args)

    def kernels(self, count, called, begin, length, **where):
        """One after the other, of `length` each."""
        for i in range(count):
            self.kernel("gemm", called + 10 * i, begin + length * i, length, **where)

    def collective(self, called, begin, length, stream=20, **where):
        self.kernel(ALLREDUCE, called, begin, length, stream, **where,
                    **{"Collective name": "allreduce", "In msg nelems": 1 << 20, "Out msg nelems": 1 << 20, "dtype": "Float",
                       "Group size": self.world, "Process Group Name": "0", "Process Group Ranks": str(list(range(self.world)))})

    def copy(self, kind, called, begin, length, mb, stream=7, thread=1, api="cudaMemcpyAsync", call=5):
        correlation = self.call(api, called, call, thread)
        self.on_gpu("gpu_memcpy", f"Memcpy {kind}", correlation, begin, length, stream, bytes=mb * 1_000_000)

    def write(self, path):
        path.write_text(json.dumps({**self.head, "traceEvents": self.events}))
        return path
