// SPDX-License-Identifier: Apache-2.0
// dlsym and dlvsym: ask the filter first; where it has no answer, jump to the real one with the
// caller's return address in place, because RTLD_NEXT means "next after the caller".
        .text

        .macro interpose name, filter, real
        .globl  \name
        .type   \name, @function
\name:
        .cfi_startproc
        endbr64
        push    %rdi
        .cfi_adjust_cfa_offset 8
        push    %rsi
        .cfi_adjust_cfa_offset 8
        push    %rdx
        .cfi_adjust_cfa_offset 8
        call    \filter                 // rsp is 16-aligned here: return address + three words
        pop     %rdx
        .cfi_adjust_cfa_offset -8
        pop     %rsi
        .cfi_adjust_cfa_offset -8
        pop     %rdi
        .cfi_adjust_cfa_offset -8
        test    %rax, %rax
        jz      1f
        cmp     $1, %rax                // 1: answer "not found"
        je      2f
        ret
2:      xor     %eax, %eax
        ret
1:      jmp     *\real(%rip)
        .cfi_endproc
        .size   \name, . - \name
        .endm

        interpose dlsym, gpuprof_filter_dlsym, gpuprof_real_dlsym
        interpose dlvsym, gpuprof_filter_dlvsym, gpuprof_real_dlvsym

        .section .note.GNU-stack, "", @progbits
