# SPDX-License-Identifier: Apache-2.0
from .optimizer import Optimizer


class SGD(Optimizer):
    """Keeps state of its parameters only with a momentum."""

    def __init__(self, momentum=0):
        super().__init__()
        self.momentum = momentum

    def step(self, closure=None):
        for group in self.param_groups if self.momentum else ():
            for parameter in group["params"]:
                self.state.setdefault(parameter, {})
        return closure() if closure else None
