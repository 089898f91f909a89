# SPDX-License-Identifier: Apache-2.0
from .optimizer import Optimizer


class SGD(Optimizer):
    def step(self, closure=None):
        return closure() if closure else None
