/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Evidence B, accesses sampled by the processor: whether there is such an event. Intel calls it mem-loads (of the
 * performance cores, where there are others), AMD ibs_op, Arm SPE. Guests have none.
 *
 * Reading their records is not done here: what is not tried on a machine that has them would be a guess. */

#include "probe/memory/evidence.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

static const struct {
    const char *path, *name;
} events[] = {
    {"sys/bus/event_source/devices/cpu/events/mem-loads", "mem-loads"},
    {"sys/bus/event_source/devices/cpu_core/events/mem-loads", "mem-loads"},
    {"sys/bus/event_source/devices/ibs_op/type", "ibs_op"},
    {"sys/bus/event_source/devices/arm_spe_0/type", "arm_spe"},
};

static void detect(int root_fd, bool live, EvidenceMachine *machine)
{
    EvidenceAbility *ability = &machine->abilities[EVIDENCE_PERF];

    for (size_t i = 0; i < ARRAY_SIZE(events); i++)
        if (faccessat(root_fd, events[i].path, F_OK, 0) == 0) {
            (void)snprintf(ability->why_not, sizeof(ability->why_not),
                           "the processor samples accesses (%s), but this is not read yet", events[i].name);
            return;
        }
    (void)snprintf(ability->why_not, sizeof(ability->why_not),
                   "the processor shows no event that samples accesses to memory");
}

const EvidenceOps evidence_perf = {.kind = EVIDENCE_PERF, .detect = detect};
