# SPDX-License-Identifier: Apache-2.0
"""The report's tables of operators against key_averages() of torch.profiler, by name and by shapes of inputs: counts exactly,
the GPU's time within 1 %, the CPU's own time within 5 % where both are of one trace. What two recorders of one run say of the
CPU's time is printed: `GPUPROF_LONG_TESTS=1 tests/torch/run.sh -s tests/torch/test_key_averages.py` has all scripts."""
import os

import pytest

import key_averages

CHOSEN = key_averages.SCRIPTS if os.environ.get("GPUPROF_LONG_TESTS") else ["mnist", "lstm", "accumulation"]


def text_of(difference):
    per_cent, key, *_ = difference
    return f"{per_cent:.2f} % ({key[:40]})" if key else "none"


@pytest.mark.parametrize("script", CHOSEN)
def test_tables(tmp_path, script):
    for by, found in key_averages.compare(tmp_path, script).items():
        print(f"\n{script}, by {by}: {found['rows']} rows, {len(found['counts'])} with another count; GPU time off by "
              f"{text_of(found['gpu'])}; own CPU time, of one trace {text_of(found['cpu_self_read'])}, of one run "
              f"{found['cpu_self_in_all']:.2f} % in all, {text_of(found['cpu_self_of_1_pct'])} of rows that have 1 % of it", end="")
        assert found["counts"] == [] and found["rows"] > 30
        assert found["gpu"][1] and found["gpu"][0] <= 1, found["gpu"]
        assert found["cpu_self_read"][0] <= 5, found["cpu_self_read"]
