/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Marks for the virtual machine's cost plugin (tests/vm/cost): they switch memory prices on and off, and
 * record the counters of all CPUs under a number, so that differences between two marks can be computed.
 *
 * A mark is a "nopl" with a number as its displacement. It does nothing on real hardware, in a guest without
 * the plugin, or on other architectures, and needs no privilege. */

#define WINDOW_MARKS 256U /* numbers 0 to 255 are free for use */

#if defined(__x86_64__)

/* "nopl disp32(%rax)" with the plugin's magic number in the upper half. */
#define WINDOW_NOP(low) __asm__ volatile(".byte 0x0f,0x1f,0x80; .long 0x4e500000+%c0" ::"i"(low) : "memory")

/* The number must be in the instruction, so there is one instruction for each number, followed by a return: 8
 * bytes. Jumps to the one wanted. */
__attribute__((naked, noinline, used)) static void window_mark(unsigned number)
{
    __asm__("movzbl %dil, %eax\n\t"
            "leaq 1f(%rip), %rdx\n\t"
            "leaq (%rdx,%rax,8), %rdx\n\t"
            "jmp *%rdx\n"
            "1:\n\t"
            ".set window_number, 0\n\t"
            ".rept 256\n\t"
            ".byte 0x0f,0x1f,0x80\n\t"
            ".long 0x4e500000+window_number\n\t"
            "ret\n\t"
            ".set window_number, window_number+1\n\t"
            ".endr");
}

#else

#define WINDOW_NOP(low) ((void)(low))

static inline void window_mark(unsigned number)
{
    (void)number;
}

#endif

/* From here on memory has its price, in the whole guest. Translated code is thrown away, so the next moments
 * are slow. */
static inline void window_on(void)
{
    WINDOW_NOP(0xf001);
}

static inline void window_off(void)
{
    WINDOW_NOP(0xf000);
}
