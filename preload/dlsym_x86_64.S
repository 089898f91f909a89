// SPDX-License-Identifier: Apache-2.0
// dlsym, dlvsym and dlopen.
// The first two: ask the filter first; where it has no answer, jump to the real one with the
// caller's return address in place, because RTLD_NEXT means "next after the caller".
        .text

        .macro interpose name, filter, real
        .globl  \name
        .type   \name, @function
        .globl  gpuprof_own_\name      // for ourselves: cannot be interposed
        .hidden gpuprof_own_\name
        .set    gpuprof_own_\name, \name
\name:
        .cfi_startproc
        endbr64
        push    %rdi
        .cfi_adjust_cfa_offset 8
        push    %rsi
        .cfi_adjust_cfa_offset 8
        push    %rdx
        .cfi_adjust_cfa_offset 8
        mov     24(%rsp), %rcx          // the caller
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

// dlopen: a jump, or, for RTLD_DEEPBIND, a call whose return address lies in the caller's object, at a
// return instruction that comes back here.
        .globl  dlopen
        .type   dlopen, @function
        .globl  gpuprof_own_dlopen
        .hidden gpuprof_own_dlopen
        .set    gpuprof_own_dlopen, dlopen
dlopen:
        .cfi_startproc
        endbr64
        push    %rdi
        .cfi_adjust_cfa_offset 8
        push    %rsi
        .cfi_adjust_cfa_offset 8
        sub     $8, %rsp
        .cfi_adjust_cfa_offset 8
        mov     24(%rsp), %rdx
        call    gpuprof_before_dlopen   // (file, flags, caller)
        add     $8, %rsp
        .cfi_adjust_cfa_offset -8
        pop     %rsi
        .cfi_adjust_cfa_offset -8
        pop     %rdi
        .cfi_adjust_cfa_offset -8
        test    %rax, %rax
        jnz     1f
        jmp     *gpuprof_real_dlopen(%rip)
1:      lea     2f(%rip), %rdx
        push    %rdx
        .cfi_adjust_cfa_offset 8
        push    %rax
        .cfi_adjust_cfa_offset 8
        jmp     *gpuprof_real_dlopen(%rip)
        .cfi_adjust_cfa_offset -16
2:      push    %rax
        .cfi_adjust_cfa_offset 8
        mov     %rax, %rdi
        call    gpuprof_after_dlopen
        pop     %rax
        .cfi_adjust_cfa_offset -8
        ret
        .cfi_endproc
        .size   dlopen, . - dlopen

        .section .note.GNU-stack, "", @progbits
