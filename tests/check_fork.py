#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that a forked child forgets its parent's session: each variable of the collector is mentioned by a function
that runs in the child (collector/base/fork.h), or stands in KEPT with the reason why it stays.

A function runs in the child if its file says GPUPROF_FORGET_IN_CHILD or at_fork_in_child of it, or if such a function
calls it. Variables are those of the object files (nm): writable ones with static storage, but for thread-local ones.

usage: check_fork.py REPOSITORY OBJECTS | --self-test     OBJECTS: the folder with the collector's object files
"""
import pathlib
import re
import subprocess
import sys
import tempfile

FOUND = "found in the process: the child has the same program, libraries and interpreter"
BEGINS = "set before it is read where a session, its thread or its window begins"
SAID = "said once by the program and its children"
WITHIN = "holds something only while its function runs"
NO_CUDA = "CUDA, CUPTI and NCCL do not work in the child of a process that has initialized them"
KEPT = {  # file -> reason -> variables; "*": all that it has
    "collector/base/clock.cpp": {BEGINS: "g_clock_is_counter g_clock_of_kernel"},
    "collector/base/host.cpp": {FOUND: "g_host"},
    "collector/base/redact.cpp": {BEGINS: "g_redacted"},
    "collector/base/own_memory.cpp": {BEGINS: "g_pid g_way"},
    "collector/base/log.cpp": {BEGINS: "g_informs g_level g_rank"},
    "collector/cupti/cupti_attach.cpp": {NO_CUDA: "*"},
    "collector/cupti/cupti_buffers.cpp": {NO_CUDA: "*"},
    "collector/cupti/cupti_callback.cpp": {NO_CUDA: "*"},
    "collector/cupti/cupti_clock.cpp": {NO_CUDA: "*"},
    "collector/cupti/cupti_graph_order.cpp": {NO_CUDA: "*"},
    "collector/cupti/cupti_graphs.cpp": {NO_CUDA: "*"},
    "collector/cupti/cupti_sharing.cpp": {NO_CUDA: "*"},
    "collector/cupti/cupti_records.cpp": {NO_CUDA: "*"},
    "collector/cupti/cupti_session.cpp": {NO_CUDA: "*"},
    "collector/cupti/cupti_threads.cpp": {NO_CUDA: "*"},
    "collector/python/bridge.cpp": {
        FOUND: "g_python g_state knows_initialized_python::looked",
        "what is installed in the interpreter is so in the child": "g_audited g_installed g_pending g_step_method"},
    "collector/python/forward.cpp": {
        FOUND: "g_call g_may_train g_python g_trained g_trains",
        "what is installed in the interpreter is so in the child": "g_patch_method g_slot_method"},
    "collector/python/frame_check.cpp": {BEGINS: "g_known g_python g_reader"},
    "collector/python/known_modules.cpp": {"numbers need only be different": "g_numbers"},
    "collector/python/modules.cpp": {
        FOUND: "g_python g_refused",
        "what is installed in the interpreter is so in the child": "g_enter g_leave g_remove g_wanted"},
    "collector/python/calling_frames.cpp": {
        FOUND: "g_interpreter g_is_finalizing g_loop g_state_of_thread",
        "taken for another's where the generation differs, which each session raises": "g_frames g_generation"},
    "collector/record/communicators.cpp": {NO_CUDA: "g_communicators g_messages g_most_ranks g_named_anew"},
    "collector/record/names.cpp": {
        "addresses of functions mean the same": "g_any_left g_functions g_index g_indexed g_kept",
        "handlers of fork hold in the child": "add::registered"},
    "collector/record/ring.cpp": {"a key of the threads library holds in the child": "g_have_key g_thread_key"},
    "collector/samples/data_worker.cpp": {
        BEGINS: "g_number",
        WITHIN: "data_workers_possible::config g_settings_memory"},
    "collector/samples/native_samples.cpp": {BEGINS: "g_answer g_asked"},
    "collector/samples/processor_waits.cpp": {"as many as g_known_count says": "g_known"},
    "collector/samples/samples.cpp": {BEGINS: "g_cpu_ns g_sampler"},
    "collector/samples/thread_times.cpp": {"as many as g_head and g_tail say": "g_readings"},
    "collector/samples/workers.cpp": {
        BEGINS: "g_next_look g_next_look_everywhere g_next_sample",
        "as many as g_count says": "g_workers"},
    "collector/sources/device_info.cpp": {WITHIN: "encode_one_device::buffer"},
    "collector/sources/graphs.cpp": {FOUND: "capture_info::found"},
    "collector/sources/heap.cpp": {
        "the next window empties and marks it": "g_heap_marks g_samples",
        "a sequence of random numbers": "g_draws"},
    "collector/sources/interconnect.cpp": {"as many as g_link_count and g_port_count say": "g_links g_ports"},
    "collector/sources/memory_log.cpp": {FOUND: "device_of::known device_of::looked"},
    "collector/sources/nvml.cpp": {"as many as g_device_count says": "g_devices"},
    "collector/sources/nvtx.cpp": {
        "the program's handles hold in the child": "g_call_domain g_next_range schema_number::next",
        "a word that only has to change": "g_windows",
        FOUND: "g_calls"},
    "collector/sources/nvtx_payload.cpp": {
        "the program's schemas hold in the child": "g_enums g_schemas",
        "handlers of fork hold in the child": "open_lock_in_children::registered"},
    "collector/sources/nvtx_names.cpp": {
        "the program's names hold in the child": "g_count g_newest g_rows",
        "handlers of fork hold in the child": "name_nvtx_object::registered"},
    "collector/sources/nvtx_text.cpp": {
        "the program's handles hold in the child": "g_bytes g_memory g_name_count g_names",
        "handlers of fork hold in the child": "survive_fork_with_nvtx_names::registered"},
    "collector/stacks/frame_rules.cpp": {FOUND: "g_find_object"},
    "collector/stacks/stacks.cpp": {BEGINS: "g_note g_turns"},
    "collector/stacks/unwind.cpp": {
        FOUND: "g_own_begin g_own_end",
        "rules of mapped code, kept until the generation changes": "g_generation g_sets"},
    "collector/steps/kernel_steps.cpp": {
        FOUND: "demangler::found",
        BEGINS: "g_any_unknown g_compiled g_pattern g_verdicts"},
    "collector/steps/marking_device.cpp": {FOUND: "g_get_device", "the time of the last look: the next is a moment away": "g_looked"},
    "collector/steps/period_steps.cpp": {BEGINS: "g_anchor g_anchored g_launches g_looks g_position g_search"},
    "collector/steps/step_calls.cpp": {BEGINS: "g_step_source"},
    "collector/torch/guarded_call.cpp": {FOUND: "g_runtime"},
    "collector/torch/input_shapes.cpp": {FOUND: "g_delete g_functions g_state"},
    "collector/torch/operators.cpp": {BEGINS: "g_with_shapes", SAID: "operators_begin::said"},
    "collector/torch/process_groups.cpp": {FOUND: "g_comms_kind g_current g_functions g_state", WITHIN: "try_out::memory"},
    "collector/torch/record_function.cpp": {
        FOUND: "g_probe g_sequence_offset g_torch",
        "a child is observed where its parent was, until it stops that itself": "g_handles g_observer g_state",
        WITHIN: "try_out::memory"},
    "collector/window/drain.cpp": {BEGINS: "g_drain_memory", "a word that only has to change": "g_progress"},
    "collector/window/identity.cpp": {
        WITHIN: "encode_command::text encode_command::argument encode_command::shown is_of_ancestors_run::ancestor", BEGINS: "make_ring_names::place"},
    "collector/torch/open_ranges.cpp": {"read up to g_ended_count": "g_ended"},
    "collector/window/boundaries.cpp": {
        SAID: "begin_anew::said ignore_profiler::said has_room_to_follow::said may_open_bracket::said take_boundaries::said_leader"},
    "collector/window/ready_command.cpp": {WITHIN: "g_start"},
    "collector/window/session.cpp": {SAID: "give_up_waiting::said"},
    "collector/window/step_source.cpp": {SAID: "say_source_once::said"},
}


def variables_in(listing):
    """Names of the writable variables in what `nm -C` says; one inside a function as "function::name"."""
    for line in listing.splitlines():
        match = re.match(r"[0-9a-f]+ ([bBdDu]) (.*)", line.strip())
        if not match or "guard variable" in match[2] or match[2].startswith(("vtable", "std::")):
            continue
        name = match[2].replace("(anonymous namespace)", "")
        inside = re.search(r"(\w+)\((?:.*)\)(?: const)?::(\w+)$", name)
        last = inside[2] if inside else re.split(r"::", name)[-1]
        if not re.match(r"(k[A-Z]|t_|g_at_fork_|\.)", last):
            yield f"{inside[1]}::{last}" if inside else last


def functions_of(text):
    """Name -> body of the functions that stand at the beginning of a line, with their lambdas."""
    found = {}
    head = r"^[\w:<>*& ]*?\b(?:\w+::)?(\w+)\([^;{}]*\)[^;{}\n]*\{"
    for name, rest in re.findall(head + r"((?:[^\n]*\}\n)|(?:\n.*?\n\}))", text, re.M | re.S):
        found[name] = found.get(name, "") + rest
    return found


def child_code(sources):
    """File -> what of it runs in the child: the bodies of its registered functions and of those they call."""
    bodies = {file: functions_of(text) for file, text in sources.items()}
    due = []
    for file, text in sources.items():
        names = re.findall(r"(?:GPUPROF_FORGET_IN_CHILD|at_fork_in_child)\((\w+)\)", text)
        due += [(file, name) for name in names]
    code = {file: "".join(re.findall(r"at_fork_in_child\(\[\] \{.*?\}\)", text)) for file, text in sources.items()}
    seen = set()
    while due:
        file, name = due.pop()
        if (file, name) in seen or name not in bodies[file]:
            continue
        seen.add((file, name))
        body = bodies[file][name]
        code[file] += body
        for called in set(re.findall(r"\b(\w+)\(", body)):
            due += [(other, called) for other in sources if called in bodies[other] and (other == file or called.startswith(
                ("forget_", "unlock_", "data_worker_")))]
    return code


def check(sources, listings, kept):
    """sources: file -> text; listings: file -> nm's output."""
    code = child_code(sources)
    problems, count = [], 0
    for file, listing in sorted(listings.items()):
        kept_here = {name for names in kept.get(file, {}).values() for name in names.split()}
        for name in sorted(set(variables_in(listing))):
            count += 1
            if "::" not in name and re.search(rf"\b{name}\b", code[file]):
                continue
            if not kept_here & {name, "*"}:
                problems.append(f"{file}: {name} stays as it was in the child after fork: let a function of "
                                "GPUPROF_FORGET_IN_CHILD (collector/base/fork.h) reset it, or say in KEPT why not")
    for file, reasons in sorted(kept.items()):
        for name in set(" ".join(reasons.values()).split()) - {"*"} if file in sources else ():
            word = rf"\b{name.split('::')[-1]}\b"
            is_reset = "::" not in name and re.search(word, code[file])
            if is_reset or not re.search(word, sources[file]):
                problems.append(f"{file}: {name} stands in KEPT, but is no variable, or is reset")
    return count, problems


GOOD = {
    "collector/a/a.cpp": """Mutex g_lock;
int g_own = 0;
void forget_a() {
  if (true) {
    forget_b();
  }
  g_own = 0;
}
GPUPROF_FORGET_IN_CHILD(forget_a);
void unlock() { g_lock.unlock(); }
void begin() { at_fork_in_child(unlock); }
""",
    "collector/b/b.cpp": "int g_other = 0, g_python = 0;\nvoid forget_b() { g_other = 0; }\nint f() { static int said; return said; }\n",
}
LISTINGS = {
    "collector/a/a.cpp": "0000000000000000 b gpuprof::(anonymous namespace)::g_lock\n0000000000000008 B gpuprof::g_own\n"
                         "0000000000000000 b guard variable for gpuprof::f()::x\n0000000000000000 d vtable for gpuprof::A\n"
                         "0000000000000000 d gpuprof::(anonymous namespace)::kNames\n",
    "collector/b/b.cpp": "0000000000000000 b gpuprof::g_other\n0000000000000008 b gpuprof::g_python\n"
                         "000000000000000c b gpuprof::f()::said\n",
}
SELF_TEST_KEPT = {"collector/b/b.cpp": {"found": "g_python", "said once": "f::said"}}
SELF_TEST = [  # file, what is replaced by what; what the problem names
    ("collector/a/a.cpp", "", "", None),
    ("collector/a/a.cpp", "  g_own = 0;\n", "", "g_own"),
    ("collector/a/a.cpp", "    forget_b();\n", "", "g_other"),
    ("collector/a/a.cpp", "GPUPROF_FORGET_IN_CHILD(forget_a);\n", "", "g_own"),
    ("collector/a/a.cpp", "at_fork_in_child(unlock);", "", "g_lock"),
    ("collector/b/b.cpp", "g_other = 0; }", "g_other = g_python = 0; }", "g_python stands in KEPT"),
]


def self_test():
    wrong = 0
    for file, old, new, expected in SELF_TEST:
        sources = dict(GOOD)
        sources[file] = sources[file].replace(old, new)
        _, problems = check(sources, LISTINGS, SELF_TEST_KEPT)
        if not (any(expected in problem for problem in problems) if expected else not problems):
            print(f"{file} with {new!r} for {old!r}: expected {expected or 'no violation'}, got {problems}")
            wrong += 1
    for kept, expected in (({}, "said"), ({"collector/b/b.cpp": {"all": "*"}}, None)):
        _, problems = check(GOOD, LISTINGS, kept)
        wrong += not (any(expected in problem for problem in problems) if expected else not problems)
    print(f"check_fork: self-test, {len(SELF_TEST) + 2} cases, {wrong} wrong")
    return 1 if wrong else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if len(arguments) != 2:
        print(__doc__.strip().splitlines()[-1], file=sys.stderr)
        return 2
    root, objects = map(pathlib.Path, arguments)
    sources = {path.relative_to(root).as_posix(): path.read_text() for path in sorted(root.glob("collector/**/*.cpp"))}
    listings = {}
    for file in sources:
        path = objects / (file.split("/", 1)[1] + ".o")
        listings[file] = subprocess.run(["nm", "-C", "--defined-only", path], check=True, stdout=subprocess.PIPE,
                                        text=True).stdout
    count, problems = check(sources, listings, KEPT)
    print("\n".join(problems + [f"check_fork: {count} variables, {len(problems)} violations"]))
    return 1 if problems or not count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
