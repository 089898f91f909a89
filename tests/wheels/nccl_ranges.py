# SPDX-License-Identifier: Apache-2.0
"""The NVTX ranges of NVIDIA's own NCCL, of a release that names the communicator and of one that does not: gpuprof reads
what each call passed. The functions are called by the names that NCCL keeps for interposers (pnccl...), which no hook has,
with what is no communicator: NCCL marks the call, looks at the communicator and refuses. No GPU is needed.

    nccl_ranges.py [CACHE]    exit 0 all is so, 1 something is not, 77 the wheels cannot be had"""
import pathlib
import sys
import tempfile

import cupti_layout

sys.path.insert(0, str(cupti_layout.SOURCE / "tests/e2e"))
import harness  # noqa: E402

NAMES_COMMUNICATOR = {"nvidia-nccl-cu12==2.21.5": False, "nvidia-nccl-cu13==2.28.9": True}
FIRST_WORD = 1 << 40
# Each word of the communicator that is none tells its own place: NCCL's hash of it is one of these words.
PROGRAM = f"""
import ctypes, sys
cuda, nccl = ctypes.CDLL("libcudart.so.13"), ctypes.CDLL(sys.argv[1])
P, size = ctypes.c_void_p, ctypes.c_size_t
assert nccl.ncclGetUniqueId(ctypes.create_string_buffer(128)) == 0  # NCCL registers its enumeration now
words = 1 << 21
none = (ctypes.c_uint64 * words)(*range({FIRST_WORD}, {FIRST_WORD} + words))
comm = P(ctypes.addressof(none))
cuda.cudaDeviceSynchronize()
refused = [nccl.pncclAllReduce(None, None, size(1000), 7, 2, comm, None), nccl.pncclReduceScatter(None, None, size(11), 8, 0, comm, None),
           nccl.pncclReduce(None, None, size(12), 7, 1, 3, comm, None), nccl.pncclAllGather(None, None, size(13), 7, comm, None),
           nccl.pncclBroadcast(None, None, size(14), 7, 4, comm, None), nccl.pncclSend(None, size(15), 7, 5, comm, None),
           nccl.pncclRecv(None, size(16), 7, 6, comm, None)]
cuda.cudaDeviceSynchronize()
print(*set(refused))
"""
# Function, bytes, operation, root or peer.
CALLS = [("ncclAllReduce", 4000, 2, None), ("ncclReduceScatter", 88, 0, None), ("ncclReduce", 48, 1, 3), ("ncclAllGather", 52, None, None),
         ("ncclBroadcast", 56, None, 4), ("ncclSend", 60, None, 5), ("ncclRecv", 64, None, 6)]


def problem(library, names_communicator, folder):
    """What is wrong; empty: nothing."""
    done = harness.run([sys.executable, "-c", PROGRAM, library],
                       harness.preloaded(GPUPROF_OUTPUT=folder, **harness.WHOLE_RUN), timeout=60)
    if (done.code, done.out) != (0, "4\n"):
        return f"exit code {done.code}, NCCL's answers {done.out!r} for 4, ncclInvalidArgument: {done.err[-300:]}"
    records = harness.of_kind(harness.records(harness.dumps(folder)[0]), "collective")
    found = [(r["name"], r.get("bytes"), r.get("operation"), r.get("peer")) for r in records]
    if found != CALLS:
        return f"calls are {found}"
    communicators = {r.get("communicator") for r in records}
    if not names_communicator:
        return "" if communicators == {None} else f"communicators {communicators}, which this release does not tell"
    if len(communicators) != 1 or not all(c and FIRST_WORD <= c < FIRST_WORD + (1 << 21) for c in communicators):
        return f"communicators {communicators} for one word of it"
    return ""


def main():
    cache = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else cupti_layout.default_cache()
    cache.mkdir(parents=True, exist_ok=True)
    folders = {wheel: cupti_layout.fetch(wheel, cache) for wheel in NAMES_COMMUNICATOR}
    missing = [wheel for wheel, folder in folders.items() if folder is None]
    if missing:
        print(f"skipped: these wheels cannot be had here: {', '.join(missing)}")
        return 77
    wrong = 0
    with tempfile.TemporaryDirectory() as temporary:
        for wheel, folder in folders.items():
            found = problem(next(folder.rglob("libnccl.so.2")), NAMES_COMMUNICATOR[wheel], pathlib.Path(temporary) / wheel)
            wrong += bool(found)
            print(f"{wheel}: {found or f'{len(CALLS)} calls with what they passed'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
