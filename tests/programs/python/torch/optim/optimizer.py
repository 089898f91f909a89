# SPDX-License-Identifier: Apache-2.0
import functools
import os

OLD = os.environ.get("LOOKALIKE_TORCH") == "1.13"  # before there was a hook for all optimizers
_hooks = []

if not OLD:
    def register_optimizer_step_post_hook(hook):
        _hooks.append(hook)


def profiled(step):
    @functools.wraps(step)
    def wrapper(self, *args, **kwargs):
        result = step(self, *args, **kwargs)
        for hook in _hooks:
            hook(self, args, kwargs)
        return result
    return wrapper


class Optimizer:
    def __init__(self):
        self.param_groups, self.state = [], {}
        self._hook_for_profile()

    def _hook_for_profile(self):
        if not getattr(self.__class__.step, "hooked", None):
            self.__class__.step = profiled(self.__class__.step)
            self.__class__.step.hooked = True
