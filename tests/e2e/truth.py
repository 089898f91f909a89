# SPDX-License-Identifier: Apache-2.0
"""Compares a dump with what the simulator says happened.

The simulator writes a line for each call of the program ("call") and for each piece of work on its virtual
devices ("gpu"), with CLOCK_MONOTONIC times. A dump is right when, over its window, every such call and piece
of work is in it exactly once, on its thread and stream, with its arguments and times, and nothing else is."""
import collections
import json
import pathlib
import re

import harness

GPU_TOLERANCE_NS = 1000  # device times: the bound that must hold
# A hook's record encloses the call. Both clocks are read by the same machine; this is the reading's width.
CALL_TOLERANCE_NS = 500
# How long a busy machine may keep a thread off its processor.
PUT_OFF_NS = 30_000_000

# What kind of record a call must give. Calls that match nothing are recorded as plain calls, or not at all.
CALL_KINDS = [
    ("launch", r"(cuda|cu)(LaunchKernel|LaunchCooperativeKernel|GraphLaunch)"),
    ("copy", r"(cuda|cu)Memcpy"),
    ("set", r"(cuda|cu)Memset"),
    ("alloc", r"cuda(Malloc|HostAlloc|HostRegister)|cuMem(Alloc|HostAlloc|HostRegister|Map)"),
    ("dealloc", r"cuda(Free|HostUnregister)|cuMem(Free|HostUnregister|Unmap)"),
    ("sync", r"cuda(Device|Stream|Event)Synchronize|cu(Ctx|Stream|Event)Synchronize"),
    ("collective", r"nccl(AllReduce|Reduce|Broadcast|Bcast|AllGather|ReduceScatter|AlltoAll|Gather|Scatter|Send|Recv)"),
]
GPU_KINDS = {"kernel": "gpu_kernel", "memcpy": "gpu_copy", "memset": "gpu_set"}


def kind_of(name):
    for kind, pattern in CALL_KINDS:
        if re.match(pattern, plain_name(name)):
            return kind
    return None


def load(folder, pid):
    """The simulator's lines of one process: calls and device work, each in order of begin. A process that still runs
    may be in the middle of a line, of which any part may be there before the others."""
    text = (pathlib.Path(folder) / f"truth_{pid}.jsonl").read_text()
    return [json.loads(line) for line in re.findall(r"(?<![^\n\0])\{[^\n\0]+\}\n", text)]


class Comparison:
    """One dump against one process's truth. `problems` tells each difference; `counts` what was compared.

    `killed`: the process got SIGKILL. Then all calls since the window began must be there, but for the last one
    of each thread, whose record may not have been complete; device times may lag behind and are not compared.
    `by_clock`: the clock opens the window, and not a call of the thread that records: that may be put off its
    processor then, inside a hook and before the real call, so the first call of each thread may be missing, if
    it came soon.
    `gpu`: whether the dump is to hold device work; without CUPTI it holds calls only.
    `callbacks`: the library came late: the program's own calls may be known by CUPTI's callback, as calls of the
    runtime or of the driver, and without their arguments."""

    def __init__(self, dump, truth_folder, killed=False, by_clock=False, gpu=True, callbacks=False):
        self.callbacks = callbacks
        self.records = harness.records(dump)
        self.header = next(r for r in self.records if r["kind"] == "header")
        self.summary = next(r for r in self.records if r["kind"] == "summary")
        self.begin = self.header["window_begin_mono_ns"]
        self.end = self.header["window_end_mono_ns"]
        self.truth = self._load(truth_folder)
        self.calls_by_correlation = {call["corr"]: call for call in self.truth if call["t"] == "call"}
        self.by_index = {r["index"]: r for r in self.records if "index" in r}
        self.problems = []
        self.counts = collections.Counter()
        self.pairs = []  # (truth call, record)
        self.optional = set()
        self.straddling = set()  # of these, what hooks do not have a callback may
        if killed:
            self.end = 2**63
            self.optional |= self._last_calls()
            self._compare_calls()
            return
        if by_clock:
            calls = (call for call in self.truth if call["t"] == "call" and call["end"] > self.begin)
            first = {call["tid"]: call for call in sorted(calls, key=lambda call: -call["begin"])}
            self.straddling = {id(call) for call in first.values() if call["begin"] < self.begin + PUT_OFF_NS}
            self.optional |= self.straddling
        self._compare_calls()
        if not gpu:
            return
        self._compare_gpu_work()
        self._compare_streams()

    def _load(self, truth_folder):
        return load(truth_folder, self.header["pid"])

    def _last_calls(self):
        """Those in which a thread may have been killed."""
        last = {}
        for call in self.truth:
            if call["t"] in ("call", "nccl") and call["begin"] >= last.get(call["tid"], call)["begin"]:
                last[call["tid"]] = call
        return {id(call) for call in last.values()}

    def problem(self, text, *things):
        self.problems.append(": ".join([text] + [json.dumps(thing) for thing in things]))

    # -- calls ---------------------------------------------------------------------------------------

    def _position(self, call):
        """Whether a call lies in the window: True, False, or None where it straddles an edge of it (the call
        that marks a step ends one window and begins another)."""
        if call["end"] < self.begin or call["begin"] > self.end:
            return False
        inside = call["begin"] > self.begin + CALL_TOLERANCE_NS and call["end"] < self.end - CALL_TOLERANCE_NS
        return True if inside else None

    def _compare_calls(self):
        expected, found = collections.defaultdict(list), collections.defaultdict(list)
        for call in self.truth:
            if call["t"] not in ("call", "nccl") or not kind_of(call["name"]):
                continue
            # What NCCL calls inside is its own affair; what CUPTI's callbacks tell of it is compared below.
            if call.get("via") != "nccl":
                expected[call["tid"], kind_of(call["name"])].append(call)
        for record in self.records:
            if "from_callback" in record.get("flags", ()) and self.callbacks:
                self._take_callback(record, expected)
            elif "from_callback" in record.get("flags", ()):
                self._compare_callback(record)
            elif record["kind"] in dict(CALL_KINDS):
                found[record["lane"]["tid"], record["kind"]].append(record)
        for key in expected.keys() | found.keys():
            self._pair(sorted(expected[key], key=lambda c: c["begin"]),
                       sorted(found[key], key=lambda r: r["begin_mono_ns"]))
        for call, record in self.pairs:
            self._compare_call(call, record)

    def _compare_callback(self, record):
        """A call that no hook saw, as CUPTI told it: must be one, of those that NCCL made inside."""
        call = self.calls_by_correlation.get(record["correlation"])
        self.counts["from_callback"] += 1
        if call is not None and call.get("via") != "nccl" and (self._position(call) is None or id(call) in self.straddling):
            return  # its hook began before the window did
        if call is None or call.get("via") != "nccl" or call["tid"] != record["lane"]["tid"]:
            self.problem("a callback's record that is no call inside NCCL", record)
        elif record["begin_mono_ns"] + CALL_TOLERANCE_NS < call["begin"] or record["end_mono_ns"] > call["end"] + CALL_TOLERANCE_NS:
            self.problem("a callback's record at another time", call, record)
        elif record["kind"] == "launch" and record["kernel"] != call["kernel"]:
            self.problem("kernel differs", call, record)

    def _take_callback(self, record, expected):
        """A call of the program that no hook saw: takes it from those that are still to be found."""
        self.counts["from_callback"] += 1
        call = self.calls_by_correlation.get(record["correlation"])
        calls = expected[call["tid"], kind_of(call["name"])] if call else []
        if call and not kind_of(call["name"]):
            return
        if call not in calls or (call["tid"], kind_of(call["name"])) != (record["lane"]["tid"], record["kind"]):
            self.problem("a callback's record that is no call, or one more of it", record)
        elif record["begin_mono_ns"] > call["end"] or record["end_mono_ns"] < call["begin"]:
            # The runtime's call contains the driver's, which is what the log has; the driver's is inside it.
            self.problem("a callback's record at another time", call, record)
        else:
            calls.remove(call)

    def _pair(self, calls, records):
        """Both are of one thread, so they do not overlap among themselves: a walk along both pairs them."""
        position = 0
        for call in calls:
            needed = self._position(call)
            while position < len(records) and records[position]["end_mono_ns"] + CALL_TOLERANCE_NS < call["end"]:
                self.problem("a record that is no call", records[position])
                position += 1
            if (position < len(records) and
                    records[position]["begin_mono_ns"] <= call["begin"] + CALL_TOLERANCE_NS):
                # The record begins before the call, perhaps by much, if the thread is put off its processor in between.
                if needed is False and not self.begin <= records[position]["begin_mono_ns"] <= self.end:
                    self.problem("recorded outside the window", call)
                self.pairs.append((call, records[position]))
                position += 1
            elif needed and id(call) not in self.optional:
                self.problem("a call that is not in the dump", call)
        for record in records[position:]:
            self.problem("a record that is no call", record)

    def _compare_call(self, call, record):
        kind = record["kind"]
        self.counts[kind] += 1
        if plain_name(call["name"]) != plain_name(record["name"]):
            self.problem("name differs", call, record)
        if call["ret"] != record["result"]:
            self.problem("result differs", call, record)
        # A kernel that did not come from a program's fat binary is known by the name that CUPTI gives it.
        kernel = record.get("kernel") or self.by_index.get(record.get("partner"), {}).get("name")
        # Registered before the library was there: then the name is CUPTI's, which has none of captured launches.
        unknown = self.callbacks and "partner" not in record and not kernel
        if call.get("kernel") and call["kernel"] != kernel and not unknown:
            self.problem("kernel differs", call, record)
        if kind == "collective":
            for field, key in (("count", "count"), ("data_type", "dtype"), ("operation", "op"), ("rank", "rank"), ("rank_count", "nranks")):
                if record.get(field, -1) != call[key]:
                    self.problem(f"{field} differs", call, record)
        if "bytes" in call and kind in ("copy", "set", "alloc") and call["bytes"] != record["bytes"]:
            self.problem("bytes differ", call, record)
        if "ptr" in call and kind in ("alloc", "dealloc") and as_number(call["ptr"]) != as_number(record["address"]):
            self.problem("address differs", call, record)
        if "grid" in call and kind == "launch":
            if (call["grid"], call["block"], call["shmem"]) != (record["grid"], record["block"], record["shared_bytes"]):
                self.problem("launch shape differs", call, record)

    # -- work on the devices ---------------------------------------------------------------------------

    def _compare_gpu_work(self):
        expected, found = collections.defaultdict(list), collections.defaultdict(list)
        for work in self.truth:
            if work["t"] == "gpu" and work["type"] in GPU_KINDS:
                expected[work["corr"], GPU_KINDS[work["type"]]].append(work)
        for record in self.records:
            if record["kind"] in GPU_KINDS.values():
                found[record["correlation"], record["kind"]].append(record)
        for key in expected.keys() | found.keys():
            works = sorted(expected[key], key=lambda w: (w["begin"], w["stream"]))
            records = sorted(found[key], key=lambda r: (r["begin_mono_ns"], r["lane"].get("stream")))
            call = self.calls_by_correlation.get(key[0])
            needed = call is not None and self._position(call)
            if not records and not needed:
                continue  # launched before or after the window
            if len(works) != len(records) and not needed:
                # A graph that was launched before the window: what was over when it began is not in it.
                works = [work for work in works if work["end"] > self.begin - GPU_TOLERANCE_NS]
                over = [work for work in works if work["end"] <= self.begin + GPU_TOLERANCE_NS]
                works = [work for work in works if work not in over[:max(0, len(works) - len(records))]]
            if len(works) != len(records):
                self.problem(f"{len(works)} pieces of work, {len(records)} records", works[:1], records[:1])
            for work, record in zip(works, records):
                self._compare_work(work, record)

    def _compare_work(self, work, record):
        self.counts[record["kind"]] += 1
        for edge in ("begin", "end"):
            if abs(work[edge] - record[edge + "_mono_ns"]) > GPU_TOLERANCE_NS:
                self.problem(f"{edge} differs by {record[edge + '_mono_ns'] - work[edge]} ns", work, record)
        lane = record["lane"]
        if (work["device"], work["context"], work["stream"]) != (lane["device"], lane["context"], lane["stream"]):
            self.problem("device, context or stream differs", work, record)
        if record["kind"] == "gpu_kernel":
            if work["name"] != record["name"] or (work["grid"], work["block"]) != (record["grid"], record["block"]):
                self.problem("kernel differs", work, record)
        elif work["bytes"] != record["bytes"]:
            self.problem("bytes differ", work, record)

    # -- joins and streams -----------------------------------------------------------------------------

    def _compare_streams(self):
        """Every call that made the device work is joined to its work, and a stream handle always means the
        stream that the simulator ran it on."""
        work = collections.Counter((w["corr"]) for w in self.truth if w["t"] == "gpu" and w["type"] in GPU_KINDS)
        streams = {}
        for call, record in self.pairs:
            if record["kind"] in ("launch", "copy", "set") and call["t"] == "call" and work[call["corr"]]:
                self.counts["joinable"] += 1
                partner = self.by_index.get(record.get("partner"))
                if record["correlation"] != call["corr"] or partner is None or partner["correlation"] != call["corr"]:
                    self.problem("not joined to its GPU work", call, record)
                else:
                    self.counts["joined"] += 1
            if call.get("stream") is not None and "stream_handle" in record:
                key = (record["lane"]["tid"] if as_number(record["stream_handle"]) == 2 else 0, call.get("device"),
                       as_number(record["stream_handle"]))
                if streams.setdefault(key, call["stream"]) != call["stream"]:
                    self.problem("a handle that means two streams", call, record)
                if record.get("stream", call["stream"]) != call["stream"]:
                    self.problem("stream differs", call, record)

    # -- what tests ask --------------------------------------------------------------------------------

    def assert_right(self, *kinds):
        """No difference, and each of `kinds` was really compared."""
        shown = "\n".join(problem[:600] for problem in self.problems[:4])
        assert not self.problems, f"{len(self.problems)} differences, compared {dict(self.counts)}:\n{shown}"
        assert self.counts["joined"] == self.counts["joinable"]
        for kind in kinds:
            assert self.counts[kind] > 0, f"no {kind} was compared: {dict(self.counts)}"

    def window_steps(self):
        return [r["number"] for r in self.records if r["kind"] == "step" and r["in_window"]]


def plain_name(name):
    """A call's name without what differs between how a program and how CUDA's own tools spell it."""
    name = re.sub(r"_(ptsz|ptds)$", "", name)
    name = re.sub(r"_v[0-9]{4,5}$", "", name)
    return {"__cudaLaunchKernel": "cudaLaunchKernel"}.get(name, name)


def as_number(value):
    return int(value, 0) if isinstance(value, str) else value


def signature(comparison):
    """What a program did, without times, addresses and threads: equal for two runs of the same work."""
    calls = [(r["kind"], plain_name(r["name"]), r.get("kernel", ""), r.get("bytes", 0) if r["kind"] != "dealloc" else 0,
              tuple(r.get("grid", ())), tuple(r.get("block", ()))) for _, r in
             sorted(comparison.pairs, key=lambda pair: pair[1]["begin_mono_ns"])]
    work = sorted((r["kind"], r["name"], r.get("bytes", 0), tuple(r.get("grid", ())), r["end_mono_ns"] > r["begin_mono_ns"])
                  for r in comparison.records if r["kind"] in GPU_KINDS.values())
    return calls, work
