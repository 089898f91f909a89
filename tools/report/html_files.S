// SPDX-License-Identifier: Apache-2.0
// Files as they are, between two symbols each. The assembler looks for them in the folders that
// CMakeLists.txt names.
.macro embed name, file
.globl gpuprof_html_\name
.hidden gpuprof_html_\name
gpuprof_html_\name:
.incbin "\file"
.globl gpuprof_html_\name\()_end
.hidden gpuprof_html_\name\()_end
gpuprof_html_\name\()_end:
.byte 0
.endm

.section .rodata
embed page, "page.html"
embed style, "page.css"
embed script, "page.js"
embed chart, "chart.min.js"
embed licence, "chart_licence.txt"

.section .note.GNU-stack, "", @progbits
