// SPDX-License-Identifier: Apache-2.0
// What guarded_call.h says. An exception's handler gets its object in x0, as a compiler's would.
        .text
        .globl  gpuprof_guarded_call
        .hidden gpuprof_guarded_call
        .type   gpuprof_guarded_call, %function
        .globl  gpuprof_guarded_call_caught
        .hidden gpuprof_guarded_call_caught
gpuprof_guarded_call:
        .cfi_startproc
        .cfi_personality 0x1b, gpuprof_guard_personality
        stp     x29, x30, [sp, #-16]!
        .cfi_def_cfa_offset 16
        .cfi_offset x29, -16
        .cfi_offset x30, -8
        mov     x29, sp
        mov     x9, x0
        mov     x0, x1
        blr     x9
        mov     w0, #1
1:      ldp     x29, x30, [sp], #16
        .cfi_remember_state
        .cfi_restore x29
        .cfi_restore x30
        .cfi_def_cfa_offset 0
        ret
        .cfi_restore_state
gpuprof_guarded_call_caught:
        hint    #36                     // bti j
        bl      gpuprof_drop_exception
        mov     w0, #0
        b       1b
        .cfi_endproc
        .size   gpuprof_guarded_call, . - gpuprof_guarded_call

        .section .note.GNU-stack, "", %progbits
