/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "probe/memory/evidence.h"

#include "base/time.h"
#include "probe/hints/pace.h"

#include <stdio.h>
#include <string.h>

const char *const evidence_names[] = {"write", "kernel", "residency", NULL};
static_assert(ARRAY_SIZE(evidence_names) == EVIDENCE_MAX + 1, "one name per value");

struct EvidenceSession {
    const EvidenceOps *ops;
    void *context;
    EvidenceFinds finds;
};

/* In the order of their kinds. The last kind, residency, is not made by rounds. */
static const EvidenceOps *const all_ops[] = {&evidence_write, &evidence_kernel};
static_assert(ARRAY_SIZE(all_ops) == EVIDENCE_RESIDENCY, "one for each kind but residency");

/* Residency always works, and is as good as no evidence of use. */
void evidence_detect(int root_fd, bool live, EvidenceMachine *ret)
{
    EvidenceMachine machine = {.abilities[EVIDENCE_RESIDENCY].works = true,
                               .stall_usec = HINT_PACE_STALL_USEC};

    for (size_t i = 0; i < ARRAY_SIZE(all_ops); i++)
        all_ops[i]->detect(root_fd, live, &machine);
    *ret = machine;
}

void evidence_detect_switched(int root_fd, EvidenceMachine *machine)
{
    machine->abilities[EVIDENCE_KERNEL] = (EvidenceAbility){0};
    machine->kernel_balances = false;
    evidence_kernel.detect(root_fd, true, machine);
}

bool evidence_locates(EvidenceKind kind)
{
    return kind < EVIDENCE_RESIDENCY && all_ops[kind]->locates;
}

EvidenceKind evidence_choose(const EvidenceMachine *machine, EvidenceKind wanted)
{
    assert(wanted >= 0 && wanted <= EVIDENCE_MAX);
    if (wanted < EVIDENCE_MAX)
        return machine->abilities[wanted].works ? wanted : EVIDENCE_RESIDENCY;
    for (int i = 0; i < EVIDENCE_RESIDENCY; i++)
        if (machine->abilities[i].works)
            return (EvidenceKind)i;
    return EVIDENCE_RESIDENCY;
}

char *evidence_explain(const EvidenceMachine *machine, EvidenceKind wanted)
{
    EvidenceKind chosen = evidence_choose(machine, wanted);
    CLEANUP_FREE char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);

    if (!f)
        return NULL;
    (void)fputs(evidence_names[chosen], f);
    for (int i = 0, n = 0; i < EVIDENCE_RESIDENCY; i++) {
        if (i == (int)chosen)
            break;
        if (wanted == EVIDENCE_MAX || (int)wanted == i)
            (void)fprintf(f, "%s not %s: %s", n++ == 0 ? ";" : ",", evidence_names[i],
                          machine->abilities[i].why_not);
    }
    return fclose(f) == 0 ? TAKE_PTR(text) : NULL;
}

int evidence_begin(const EvidenceMachine *machine, EvidenceKind kind, const EvidenceTarget *target,
                   EvidenceSession **ret)
{
    EvidenceSession *session;
    int r;

    if (kind >= EVIDENCE_RESIDENCY)
        return -EOPNOTSUPP;
    session = calloc(1, sizeof(*session));
    if (!session)
        return -ENOMEM;
    session->ops = all_ops[kind];
    touches_init(&session->finds.touches, target->topology->n_nodes);
    r = evidence_ask(session, &(EvidenceRange){0, UINT64_MAX}, 1);
    if (r == 0)
        r = session->ops->begin(target, machine, &session->context);
    if (r != 0) {
        free(session->finds.asked);
        free(session);
        return r;
    }
    *ret = session;
    return 0;
}

EvidenceSession *evidence_end(EvidenceSession *session)
{
    if (session) {
        session->ops->end(session->context);
        touches_done(&session->finds.touches);
        regions_done(&session->finds.regions);
        free(session->finds.asked);
        free(session);
    }
    return NULL;
}

int evidence_round(EvidenceSession *session, const EvidenceNow *now, EvidenceRound *ret)
{
    uint64_t begin = time_thread_cpu_nsec();
    EvidenceRound round = {0};
    int r = session->ops->round(session->context, now, &session->finds, &round);

    if (r != 0)
        return r;
    round.cost_usec = (time_thread_cpu_nsec() - begin) / NSEC_PER_USEC;
    round.due_usec = MAX(now->now_usec + now->period_usec, round.rest_until_usec);
    *ret = round;
    return 0;
}

Touches *evidence_touches(EvidenceSession *session)
{
    return &session->finds.touches;
}

MemoryRegions *evidence_regions(EvidenceSession *session)
{
    return session->ops->locates ? &session->finds.regions : NULL;
}

int evidence_ask(EvidenceSession *session, const EvidenceRange *ranges, size_t n)
{
    EvidenceFinds *finds = &session->finds;

    if (!GROW(finds->asked, finds->asked_capacity, n + 1))
        return -ENOMEM;
    memcpy(finds->asked, ranges, n * sizeof(*ranges));
    finds->n_asked = n;
    return 0;
}
