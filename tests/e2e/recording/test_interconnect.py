# SPDX-License-Identifier: Apache-2.0
"""What ranks are connected by: NVLinks by NVML, network ports by the kernel; and collectives beside it."""
import json
import os
import shutil

import harness
import pytest

PROGRAM = [harness.SIMTRAIN, "--ranks", 2, "--steps", 30, "--layers", 2, "--comm-mb", 64, "--data-ms", 20]
SCHEDULE = {"GPUPROF_STEP": "nvtx:step", "GPUPROF_SCHEDULE": "skip_first=3,wait=0,warmup=0,active=20,repeat=1"}


def recorded(folder, before=(), **settings):
    """`info` of each rank, and the report of all."""
    env = harness.preloaded(GPUPROF_OUTPUT=folder / "out", **SCHEDULE, **settings)
    run = harness.run_within(before, PROGRAM, env)
    assert run.code == 0, run.err
    ranks = [harness.info(dump) for dump in harness.dumps(folder / "out")]
    assert len(ranks) == 2
    return ranks, json.loads(harness.checked("report", folder / "out", "--format", "json").out), folder / "out"


def of_all_ranks(report):
    rows = [row for row in report["collective_times"] if row["matched"] and row["ranks"] == 2]
    assert rows
    return rows


def test_nvlinks_and_what_a_collective_makes_of_them(tmp_path):
    ranks, report, folder = recorded(tmp_path, SIMCUDA_NVLINK="18x26562,down=2")
    for info in ranks:
        links, = info["files"][0]["nvlinks"]
        assert (links["active"], links["mbytes_per_s"], links["nvml_version"]) == (16, 26562, 6)
    for row in of_all_ranks(report):
        assert row["link"] == "16 NVLinks of 26.6 GB/s"
        assert row["link_gb_per_s"] == pytest.approx(16 * 26.562, rel=1e-3)
    text = harness.checked("report", folder).out
    assert "of link: NCCL is assumed to use 16 NVLinks of 26.6 GB/s, one way" in text
    row = of_all_ranks(report)[0]
    assert f"{100 * row['bus_gb_per_s'] / row['link_gb_per_s']:.0f} %" in text


@pytest.mark.parametrize("setting", [{}, {"SIMCUDA_NVLINK": "4x25781,down=4"}])
def test_nothing_is_said_where_nothing_is_known(setting, tmp_path):
    ranks, report, folder = recorded(tmp_path, **setting)
    for info in ranks:
        assert info["files"][0]["nvlinks"] == []
    assert not any("link" in row or "link_gb_per_s" in row for row in of_all_ranks(report))
    assert "of link" not in harness.checked("report", folder).out


def test_ports_of_the_host(tmp_path):
    if os.geteuid() != 0 or not shutil.which("unshare") or harness.run(["unshare", "-m", "true"]).code != 0:
        pytest.skip("a /sys/class of its own needs root and unshare -m, which a chroot refuses")
    place = tmp_path / "class/infiniband/mlx5_0/ports/1"
    place.mkdir(parents=True)
    for name, text in (("state", "4: ACTIVE"), ("rate", "400 Gb/sec (4X NDR)"), ("link_layer", "InfiniBand")):
        (place / name).write_text(text + "\n")
    before = ["unshare", "-m", "sh", "-c", 'mount --bind "$0" /sys/class && exec "$@"', tmp_path / "class"]
    ranks, report, _ = recorded(tmp_path, before=before, SIMCUDA_NVLINK="18x26562")
    for info in ranks:
        assert info["files"][0]["network_ports"] == [
            {"adapter": "mlx5_0", "port": 1, "mbits_per_s": 400000, "link_layer": "InfiniBand"}]
    assert all("NVLink" in row["link"] for row in of_all_ranks(report)), "both ranks are on one host"
