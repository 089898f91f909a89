# SPDX-License-Identifier: Apache-2.0
"""More names than a table has room for: texts of one window make room for the next one's, what finds no room is counted
and said, and long names stay apart."""
import re

import harness

PROGRAM = harness.HAZARDS / "names"


def profile(folder, *arguments, schedule, **settings):
    env = harness.preloaded(GPUPROF_OUTPUT=folder, GPUPROF_STEP="sync:1", GPUPROF_SCHEDULE=schedule, **settings)
    done = harness.run([PROGRAM, *map(str, arguments)], env)
    assert done.code == 0, done.err
    return harness.dumps(folder), done.err


def lost(dump, kind):
    return harness.info(dump)["files"][0]["losses"].get(kind, 0)


def test_ten_windows_of_texts_that_come_once(tmp_path):
    """A window's texts take 1.6 MB: those of ten are twice what a table holds."""
    texts = 20_000
    dumps, err = profile(tmp_path, "texts", 24, texts, schedule="skip_first=2,warmup=1,active=1,repeat=10")
    assert len(dumps) == 10
    for dump in dumps:
        messages = [r["message"] for r in harness.of_kind(harness.records(dump), "nvtx_range")]
        assert len(messages) == texts and len(set(messages)) == texts and "" not in messages
        step, = {re.search("of step (.*),", message).group(1) for message in messages}
        assert lost(dump, "string_table_full") == 0
    assert "without their name" not in err


def test_names_that_find_no_room_are_counted_and_said(tmp_path):
    kernels = 300_000
    dumps, err = profile(tmp_path, "kernels", 3, kernels, schedule="skip_first=0,warmup=0,active=1",
                         GPUPROF_BUFFER_MB=256, GPUPROF_PRESET="light")
    dump, = dumps
    lines = [line for line in harness.checked("parse", "--format", "json", dump).out.splitlines() if '"kind":"gpu_kernel"' in line]
    nameless = sum('"name":""' in line for line in lines)
    assert len(lines) == kernels and 0 < nameless < len(lines) - 50_000
    counted = lost(dump, "string_table_full")
    assert counted >= nameless
    said, = re.findall(r"(\d+) events without their name", err)
    assert int(said) >= counted


def test_more_kernels_than_are_named_for_who_reads_the_ring(tmp_path):
    """Without CUPTI launches tell their kernel alone, whose name is kept as it is first met."""
    kernels = 70_000
    dumps, err = profile(tmp_path, "kernels", 1, kernels, schedule="all", GPUPROF_CUPTI="off")
    dump, = dumps
    assert harness.info(dump)["files"][0]["events"]["launch"] == kernels, err


def test_long_names_stay_apart(tmp_path):
    dumps, err = profile(tmp_path, "long", 3, 26, schedule="skip_first=0,warmup=0,active=1", GPUPROF_PRESET="light")
    dump, = dumps
    names = {r["name"] for r in harness.of_kind(harness.records(dump), "gpu_kernel")}
    assert len(names) == 26
    assert sorted(map(len, names))[0] == 5000 + len("kernel_00000000_with_a_name_of_usual_length")
    assert max(map(len, names)) == 65535
    assert lost(dump, "name_cut") > 0 and "longer than 65,535 bytes" in err
