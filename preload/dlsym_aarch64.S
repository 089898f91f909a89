// SPDX-License-Identifier: Apache-2.0
// dlsym, dlvsym and dlopen.
// The first two: ask the filter first; where it has no answer, jump to the real one with the
// caller's return address in x30, because RTLD_NEXT means "next after the caller".
        .text

        .macro  jump_to real
        adrp    x16, \real
        ldr     x16, [x16, :lo12:\real]
        br      x16
        .endm

        .macro interpose name, filter, real
        .globl  \name
        .type   \name, %function
        .globl  gpuprof_own_\name      // for ourselves: cannot be interposed
        .hidden gpuprof_own_\name
        .set    gpuprof_own_\name, \name
\name:
        .cfi_startproc
        hint    34                      // bti c
        stp     x29, x30, [sp, #-48]!
        .cfi_def_cfa_offset 48
        .cfi_offset x29, -48
        .cfi_offset x30, -40
        mov     x29, sp
        stp     x0, x1, [sp, #16]
        str     x2, [sp, #32]
        mov     x3, x30                 // the caller
        bl      \filter
        cbz     x0, 1f
        cmp     x0, #1                  // 1: answer "not found"
        csel    x0, xzr, x0, eq
        .cfi_remember_state
        ldp     x29, x30, [sp], #48
        .cfi_restore x29
        .cfi_restore x30
        .cfi_def_cfa_offset 0
        ret
1:      .cfi_restore_state
        ldr     x2, [sp, #32]
        ldp     x0, x1, [sp, #16]
        ldp     x29, x30, [sp], #48
        .cfi_restore x29
        .cfi_restore x30
        .cfi_def_cfa_offset 0
        jump_to \real
        .cfi_endproc
        .size   \name, . - \name
        .endm

        interpose dlsym, gpuprof_filter_dlsym, gpuprof_real_dlsym
        interpose dlvsym, gpuprof_filter_dlvsym, gpuprof_real_dlvsym

// dlopen: a jump, or, for RTLD_DEEPBIND, a call whose return address lies in the caller's object, at
// instructions that take x29 and x30 from the stack and return: to 2 below.
        .globl  dlopen
        .type   dlopen, %function
        .globl  gpuprof_own_dlopen
        .hidden gpuprof_own_dlopen
        .set    gpuprof_own_dlopen, dlopen
dlopen:
        .cfi_startproc
        hint    34                      // bti c
        stp     x29, x30, [sp, #-32]!
        .cfi_def_cfa_offset 32
        .cfi_offset x29, -32
        .cfi_offset x30, -24
        mov     x29, sp
        .cfi_def_cfa x29, 32
        stp     x0, x1, [sp, #16]
        mov     x2, x30
        bl      gpuprof_before_dlopen   // (file, flags, caller)
        mov     x3, x0
        ldp     x0, x1, [sp, #16]
        cbnz    x3, 1f
        .cfi_remember_state
        ldp     x29, x30, [sp], #32
        .cfi_restore x29
        .cfi_restore x30
        .cfi_def_cfa sp, 0
        jump_to gpuprof_real_dlopen
1:      .cfi_restore_state
        adr     x30, 2f
        ldr     w4, [x3, #4]
        movz    w5, #0x23bf
        movk    w5, #0xd503, lsl #16    // autiasp: it wants the address signed for this sp
        cmp     w4, w5
        b.ne    3f
        hint    25                      // paciasp
3:      stp     x29, x30, [sp, #-16]!
        mov     x30, x3
        jump_to gpuprof_real_dlopen
2:      str     x0, [sp, #16]
        bl      gpuprof_after_dlopen
        ldr     x0, [sp, #16]
        ldp     x29, x30, [sp], #32
        .cfi_restore x29
        .cfi_restore x30
        .cfi_def_cfa sp, 0
        ret
        .cfi_endproc
        .size   dlopen, . - dlopen

        .section .note.GNU-stack, "", %progbits
