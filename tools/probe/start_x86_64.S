// SPDX-License-Identifier: Apache-2.0
// The start of gpuprof-probe. The C compiler's own start file asks for __libc_start_main of glibc
// 2.34; this one for the version that every glibc on x86-64 has. By the System V ABI, section 3.4.1:
// on entry %rdx is a function for atexit, the stack holds argc and then argv.
  .symver __libc_start_main, __libc_start_main@GLIBC_2.2.5
  .text
  .globl _start
  .type _start, @function
_start:
  .cfi_startproc
  .cfi_undefined rip
  xorl %ebp, %ebp
  movq %rdx, %r9           // rtld_fini
  popq %rsi                // argc
  movq %rsp, %rdx          // argv
  andq $-16, %rsp
  pushq %rax
  pushq %rsp               // stack_end
  xorl %r8d, %r8d          // fini
  xorl %ecx, %ecx          // init
  leaq main(%rip), %rdi
  call *__libc_start_main@GOTPCREL(%rip)
  hlt
  .cfi_endproc
  .size _start, . - _start
  .section .note.GNU-stack,"",@progbits
