# SPDX-License-Identifier: Apache-2.0
from .modules import Module
