# SPDX-License-Identifier: Apache-2.0
from . import fetch
from . import worker
