/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "machine.h"

#include "base/root.h"
#include "base/time.h"

Machine machine = {.root_fd = -1};

int machine_setup(void **state)
{
    const TopologyOptions options = {.whole_machine = true};
    CLEANUP_FREE char *error = NULL;

    machine.root_fd = root_open("/");
    if (machine.root_fd < 0 || topology_load(&options, &machine.topology, &error) < 0)
        return -1;
    evidence_detect(machine.root_fd, true, &machine.evidence);
    /* On a busy host everything takes many times as long; these tests are not about that. */
    machine.evidence.stall_usec = USEC_PER_SEC;
    return 0;
}

int machine_teardown(void **state)
{
    machine.topology = topology_unref(machine.topology);
    return close(machine.root_fd);
}

EvidenceTarget machine_target(pid_t pid)
{
    TaskStat stat;

    assert_true(task_stat(pid, &stat));
    return (EvidenceTarget){
        .root_fd = machine.root_fd,
        .topology = machine.topology,
        .pid = pid,
        .start_ticks = stat.start_ticks,
    };
}

void need_write(void)
{
    if (!machine.evidence.abilities[EVIDENCE_WRITE].works)
        contract_skip("no write hint faults: %s", machine.evidence.abilities[EVIDENCE_WRITE].why_not);
}
