// SPDX-License-Identifier: Apache-2.0
// What guarded_call.h says. An exception's handler gets its object in rax, as a compiler's would.
        .text
        .globl  gpuprof_guarded_call
        .hidden gpuprof_guarded_call
        .type   gpuprof_guarded_call, @function
        .globl  gpuprof_guarded_call_caught
        .hidden gpuprof_guarded_call_caught
gpuprof_guarded_call:
        .cfi_startproc
        .cfi_personality 0x1b, gpuprof_guard_personality
        endbr64
        sub     $8, %rsp
        .cfi_adjust_cfa_offset 8
        mov     %rdi, %rax
        mov     %rsi, %rdi
        call    *%rax
        mov     $1, %eax
        add     $8, %rsp
        .cfi_adjust_cfa_offset -8
        ret
        .cfi_adjust_cfa_offset 8
gpuprof_guarded_call_caught:
        endbr64
        mov     %rax, %rdi
        call    gpuprof_drop_exception
        xor     %eax, %eax
        add     $8, %rsp
        .cfi_adjust_cfa_offset -8
        ret
        .cfi_endproc
        .size   gpuprof_guarded_call, . - gpuprof_guarded_call

        .section .note.GNU-stack, "", @progbits
