// SPDX-License-Identifier: Apache-2.0
// The start of gpuprof-probe. The C compiler's own start file asks for __libc_start_main of glibc
// 2.34; this one for the version that every glibc on aarch64 has. On entry x0 is a function for
// atexit, the stack holds argc and then argv.
  .symver __libc_start_main, __libc_start_main@GLIBC_2.17
  .text
  .globl _start
  .type _start, %function
_start:
  .cfi_startproc
  .cfi_undefined x30
  mov x29, #0
  mov x30, #0
  mov x5, x0               // rtld_fini
  ldr x1, [sp]             // argc
  add x2, sp, #8           // argv
  mov x6, sp               // stack_end
  mov x3, #0               // init
  mov x4, #0               // fini
  adrp x0, main
  add x0, x0, :lo12:main
  bl __libc_start_main
  brk #0
  .cfi_endproc
  .size _start, . - _start
  .section .note.GNU-stack,"",%progbits
