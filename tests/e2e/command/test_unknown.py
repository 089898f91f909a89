# SPDX-License-Identifier: Apache-2.0
"""What was not recorded, or is not known, is no 0 and no idle GPU, and no export loses what ranks have in common."""
import json
import re

import harness
from test_report import judged, record, report


def text_of(path):
    return harness.checked("report", path).out


def test_copies_that_were_not_to_be_recorded(tmp_path):
    run = record(tmp_path, "--h2d-mb", "60", GPUPROF_ACTIVITIES="-memcpy,-memset")
    found = report(run)
    assert found["verdict"] == [] and "not recorded (memcpy, memset)" in found["reason"]
    assert "GPU busy at least " in text_of(run)
    whole = record(tmp_path / "whole", "--h2d-mb", "60")
    assert report(whole)["verdict"] and "GPU busy at least " not in text_of(whole)


def test_steps_that_were_not_to_be_recorded(tmp_path):
    [finding] = [f for f in report(record(tmp_path, GPUPROF_ACTIVITIES="kernel,memcpy,memset"))["findings"] if f["kind"] == "whole_windows"]
    assert "record the activity step" in finding["text"] and "mark steps" not in finding["text"]


def test_losses_of_a_file_without_an_end(tmp_path):
    dump, = harness.dumps(record(tmp_path).resolve())
    assert report(dump)["losses"] == {} and "Lost: nothing." in text_of(dump)
    cut = tmp_path / "cut.gpuprof"
    cut.write_bytes(dump.read_bytes()[:-600])
    assert "losses" not in report(cut) and "Lost: not known." in text_of(cut)
    assert re.search(r"lost +not known", harness.checked("info", cut).out)
    assert_no_total_of_losses(dump, cut)
    assert "losses" not in json.loads(harness.checked("parse", cut, "--format", "json").out.splitlines()[-1])
    page = tmp_path / "page.html"
    harness.checked("report", cut, "--format", "html", "-o", page)
    assert "Records lost: not known." in page.read_text()


def assert_no_total_of_losses(whole, other):
    """Of one whose losses are known, and one whose are not."""
    found = harness.info(whole, other)
    assert "losses" not in found and [f.get("losses") for f in sorted(found["files"], key=lambda f: f["path"] == str(other))] == [{}, None]
    text = harness.checked("info", whole, other).out
    assert sorted(re.findall(r"^  lost +(.*)$", text, flags=re.M)) == ["not known", "not known", "nothing"], text
    assert re.search(r"^2 dumps.*\n.*\n  lost +not known$", text, flags=re.M), text


def test_losses_of_other_tools_traces(tmp_path):
    whole = record(tmp_path).resolve()
    harness.checked("convert", whole, "--to", "kineto", "-o", tmp_path / "trace.json")
    assert "losses" not in report(tmp_path / "trace.json") and "Lost: not known." in text_of(tmp_path / "trace.json")
    assert_no_total_of_losses(*harness.dumps(whole), tmp_path / "trace.json")


def test_windows_that_lie_apart(tmp_path):
    done = harness.run([harness.BIN, "run", "-o", tmp_path / "out", "--schedule", "skip_first=2,wait=5,warmup=1,active=3,repeat=3", "--",
                        harness.SIMTRAIN, "--steps", "40"], env=harness.environment())
    assert "steps 8-28 in 3 windows (nvtx:step)" in done.err, done.err
    assert text_of(tmp_path / "out/latest").startswith("9 of the steps 8 to 28: ")


def test_a_straggler_is_one_in_an_export(tmp_path):
    run, ours = judged(tmp_path, "--comm-mb", "8", "--ranks", "2", "--kernel-us", "2000", "--slow-rank", "1:3")
    calls = ours["collective_calls"]
    assert calls["matched"] == calls["calls"] > 0
    harness.checked("convert", run, "--to", "kineto", "-o", tmp_path / "traces")
    found = report(tmp_path / "traces")
    assert found["verdict"][0]["cause"] == ours["verdict"][0]["cause"] == "straggler"
    assert found["collective_calls"]["matched"] == found["collective_calls"]["calls"] > 0


def test_causes_without_a_part_of_their_own_have_no_spread(tmp_path):
    _, found = judged(tmp_path, "--comm-mb", "8", "--ranks", "2", "--kernel-us", "2000", "--slow-rank", "1:3")
    rows = {row["cause"]: row for row in found["verdict"]}
    assert "share_by_step_pct" not in rows["straggler"] and "few_steps" not in rows["straggler"]
