# SPDX-License-Identifier: Apache-2.0
"""The rooms' tests share what lies here, and import each other's helpers."""
import pathlib
import sys

_HERE = pathlib.Path(__file__).resolve().parent
for _room in (_HERE, _HERE / "recording", _HERE / "safety", _HERE / "command"):
    if str(_room) not in sys.path:
        sys.path.insert(0, str(_room))
