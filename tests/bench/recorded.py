# SPDX-License-Identifier: Apache-2.0
"""What a benchmark's recording run left behind."""
import json
import subprocess
import sys


def losses_of(gpuprof, folder):
    """Records written and lost: a call that found no buffer is no recorded call."""
    done = subprocess.run([gpuprof, "info", "--format", "json", folder], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"no dump of the recording run: {done.stderr}")
    info = json.loads(done.stdout)
    return info["event_count"], info["losses"]
