// SPDX-License-Identifier: Apache-2.0
// The queries as they are, between two symbols each. The assembler looks for them in the folder
// that CMakeLists.txt names.
.macro embed name
.globl gpuprof_sql_\name
.hidden gpuprof_sql_\name
gpuprof_sql_\name:
.incbin "\name\().sql"
.globl gpuprof_sql_\name\()_end
.hidden gpuprof_sql_\name\()_end
gpuprof_sql_\name\()_end:
.byte 0
.endm

.section .rodata
#define QUERY(name) embed name
#include "tools/sql/queries.def"
#undef QUERY

.section .note.GNU-stack, "", @progbits
