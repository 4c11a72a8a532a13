/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "emulator.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Debian 13's qemu-system-x86 1:10.0.13+ds-0+deb13u1, amd64. */
#define KNOWN_VERSION "Debian 1:10.0.13+ds-0+deb13u1"
static const uint8_t known_build[] = {0xe5, 0x58, 0x8a, 0x4a, 0xe9, 0xdc, 0x72, 0x4c, 0xe1, 0x82,
                                      0xd9, 0xd2, 0x42, 0x10, 0x89, 0xe0, 0x66, 0x8f, 0xd1, 0xbd};

/* Offsets of fields in that build's structures. */
#define CPU_RUNNING           0xb4   /* bool */
#define CPU_INTERRUPT_REQUEST 0xd0   /* int */
#define CPU_BUDGET            0xd8   /* int64_t */
#define CPU_EXTRA             0xe0   /* int64_t */
#define CPU_HALTED            0x2cc  /* uint32_t */
#define CPU_DECREMENTER       0x2bb8 /* uint16_t, lower half of the counter of translated code */
#define TIMERS_BIAS           0x28   /* int64_t, nanoseconds */
/* Functions in its table of an accelerator's operations. */
#define OPS_INTERRUPT (0xb8 / sizeof(void *))
#define OPS_CLOCK     (0xc0 / sizeof(void *))
#define OPS_TICKS     (0xd0 / sizeof(void *))

#define VIRTUAL_CLOCK  1
#define ALL_ATTRIBUTES (-1)
#define CF_PARALLEL    0x8000U
/* Budget of a CPU that may run; the plugin ends the turn long before. The decrementer holds 16 bits of it. */
#define BUDGET      (1 << 30)
#define DECREMENTER 0xffff

/* All weak, so that a QEMU without them gets a refusal by this file. */
#define QEMU_HAS __attribute__((weak))
extern QEMU_HAS __thread char *current_cpu;
extern QEMU_HAS char timers_state[];
QEMU_HAS void **cpus_get_accel(void);
QEMU_HAS void *qemu_get_cpu(int index);
QEMU_HAS bool cpu_has_work(void *cpu);
QEMU_HAS void cpu_exit(void *cpu);
QEMU_HAS bool bql_locked(void);
QEMU_HAS void tcg_cflags_set(void *cpu, uint32_t flags);
QEMU_HAS int64_t icount_get(void);
QEMU_HAS void icount_prepare_for_run(void *cpu, int64_t budget);
QEMU_HAS void icount_handle_interrupt(void *cpu, int mask);
QEMU_HAS void replay_mutex_lock(void);
QEMU_HAS int64_t qemu_clock_deadline_ns_all(int clock, int attributes);

static EmulatorHooks hooks;

static bool holds(const struct dl_phdr_info *object, uint64_t address)
{
    for (unsigned i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &object->dlpi_phdr[i];

        if (p->p_type == PT_LOAD && address - (object->dlpi_addr + p->p_vaddr) < p->p_memsz)
            return true;
    }
    return false;
}

/* Walks the notes of a segment. */
static bool has_known_build(const char *notes, size_t size)
{
    while (size >= sizeof(ElfW(Nhdr))) {
        const ElfW(Nhdr) *n = (const void *)notes;
        size_t name = (n->n_namesz + 3U) & ~3U, all = sizeof(*n) + name + ((n->n_descsz + 3U) & ~3U);

        if (all > size)
            return false;
        if (n->n_type == NT_GNU_BUILD_ID && n->n_descsz == sizeof(known_build) &&
            memcmp(notes + sizeof(*n), ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) == 0)
            return memcmp(notes + sizeof(*n) + name, known_build, sizeof(known_build)) == 0;
        notes += all;
        size -= all;
    }
    return false;
}

static int look_at_object(struct dl_phdr_info *object, size_t size, void *ret_known)
{
    if (!holds(object, (uintptr_t)icount_get))
        return 0;
    for (unsigned i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &object->dlpi_phdr[i];

        if (p->p_type == PT_NOTE && has_known_build((const char *)object->dlpi_addr + p->p_vaddr, p->p_memsz))
            *(bool *)ret_known = true;
    }
    return 1;
}

const char *emulator_refusal(void)
{
    bool known = false;

    if (icount_get)
        (void)dl_iterate_phdr(look_at_object, &known);
    return known ? NULL : "not the QEMU that the clock is made for: expected " KNOWN_VERSION ", amd64";
}

/* Replaces icount_prepare_for_run(), whose budget ends at the next timer and is divided by the number of
 * CPUs. Here emulator_end_turn() ends a turn, and a CPU that may not run has no budget. */
static void prepare_for_run(char *cpu, int64_t unused)
{
    int64_t budget = hooks.may_run(cpu) ? BUDGET : 0;
    uint16_t decrementer = budget > 0 ? DECREMENTER : 0;
    int64_t extra = budget - decrementer;

    replay_mutex_lock();
    memcpy(cpu + CPU_BUDGET, &budget, sizeof(budget));
    memcpy(cpu + CPU_DECREMENTER, &decrementer, sizeof(decrementer));
    memcpy(cpu + CPU_EXTRA, &extra, sizeof(extra));
}

static void handle_interrupt(void *cpu, int mask)
{
    hooks.interrupted(cpu);
    icount_handle_interrupt(cpu, mask);
}

/* Writes a jump to `by` over the beginning of `function`. */
static int replace(void *function, void *by)
{
    uint8_t code[] = {0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0}; /* movabs $by, %rax; jmp *%rax */
    size_t page_size = (size_t)sysconf(_SC_PAGESIZE);
    char *page = (char *)((uintptr_t)function & ~(page_size - 1));

    memcpy(code + 2, &by, sizeof(by));
    /* The function may begin at the end of a page. */
    if (mprotect(page, 2 * page_size, PROT_READ | PROT_WRITE | PROT_EXEC) < 0)
        return -errno;
    memcpy(function, code, sizeof(code));
    return mprotect(page, 2 * page_size, PROT_READ | PROT_EXEC) < 0 ? -errno : 0;
}

const char *emulator_hook(const EmulatorHooks *h)
{
    void **ops = cpus_get_accel();

    if (ops[OPS_CLOCK] != (void *)icount_get || ops[OPS_TICKS] != (void *)icount_get ||
        ops[OPS_INTERRUPT] != (void *)icount_handle_interrupt)
        return "expected -accel tcg,thread=single -icount shift=0,sleep=off";
    hooks = *h;
    if (replace((void *)icount_prepare_for_run, (void *)prepare_for_run) < 0)
        return "QEMU's code cannot be written to";
    ops[OPS_CLOCK] = (void *)hooks.clock;
    ops[OPS_TICKS] = (void *)hooks.clock;
    ops[OPS_INTERRUPT] = (void *)handle_interrupt;
    return NULL;
}

void *emulator_cpu(unsigned index)
{
    return qemu_get_cpu((int)index);
}

void emulator_share_code(void *cpu)
{
    tcg_cflags_set(cpu, CF_PARALLEL);
}

bool emulator_cpu_idle(void *cpu)
{
    const char *c = cpu;
    uint32_t halted;
    int request;

    memcpy(&halted, c + CPU_HALTED, sizeof(halted));
    memcpy(&request, c + CPU_INTERRUPT_REQUEST, sizeof(request));
    return halted && (!request || !cpu_has_work(cpu));
}

void *emulator_running_cpu(void)
{
    char *cpu = current_cpu;

    return cpu && cpu[CPU_RUNNING] ? cpu : NULL;
}

void emulator_end_turn(void *cpu)
{
    cpu_exit(cpu);
}

int64_t emulator_skipped_nsec(void)
{
    return __atomic_load_n((int64_t *)(void *)(timers_state + TIMERS_BIAS), __ATOMIC_SEQ_CST);
}

int64_t emulator_deadline_nsec(void)
{
    return qemu_clock_deadline_ns_all(VIRTUAL_CLOCK, ALL_ATTRIBUTES);
}

bool emulator_locked(void)
{
    return bql_locked();
}
