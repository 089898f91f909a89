# SPDX-License-Identifier: Apache-2.0
class Module:
    def __call__(self, *inputs):
        return self.forward(*inputs)
