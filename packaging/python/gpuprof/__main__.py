# SPDX-License-Identifier: Apache-2.0
from gpuprof import main

main()
