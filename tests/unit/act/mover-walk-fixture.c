/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "mover-walk-fixture.h"

static bool go_on(void *userdata, const MoverAccount *account)
{
    WalkFixture *f = userdata;

    f->n_go_on++;
    return f->stop_after == 0 || f->n_go_on <= f->stop_after;
}

static void pause_walk(void *userdata, uint64_t usec)
{
    WalkFixture *f = userdata;

    f->paused_usec += usec;
    f->machine.now_usec += usec;
}

void walk_reset_node(WalkFixture *f)
{
    walk_node_done(&f->node);
    f->node = (WalkNode){
        .ops = &machine_ops,
        .context = &f->machine,
        .gate = &f->gate,
        .node = {1},
        .os_index = 1,
        .page_bytes = f->machine.page_bytes,
        .memory_device = 1,
        .vast_bytes = UINT64_C(1) << 40,
    };
    assert_int_equal(walk_node_init(&f->node), 0);
}

int walk_setup(void **state)
{
    WalkFixture *f = calloc(1, sizeof(*f));

    if (!f)
        return -1;
    machine_init(&f->machine);
    mover_gate_init(&f->gate);
    walk_reset_node(f);
    f->host = (WalkHost){.go_on = go_on, .pause = pause_walk, .userdata = f};
    f->order = (MoverOrder){.pid = MACHINE_PID, .start_ticks = MACHINE_START};
    f->accept = hwloc_bitmap_alloc();
    *state = f;
    return !f->accept || hwloc_bitmap_only(f->accept, 1) < 0 ? -1 : 0;
}

int walk_teardown(void **state)
{
    CLEANUP_FREE WalkFixture *f = *state;

    walk_free(f->walk);
    walk_node_done(&f->node);
    mover_gate_done(&f->gate);
    machine_done(&f->machine);
    hwloc_bitmap_free(f->accept);
    return 0;
}

MoverOutcome walk_run_part(WalkFixture *f, uint32_t part, uint32_t n_parts)
{
    f->walk = walk_free(f->walk);
    f->outcome = MOVER_OUTCOME_INVALID;
    assert_int_equal(walk_new(&f->order, f->accept, part, n_parts, &f->walk), 0);
    while (walk_step(f->walk, &f->node, &f->host, &f->outcome, &f->error))
        assert_int_equal(f->outcome, MOVER_OUTCOME_INVALID);
    f->account = *walk_account(f->walk);
    return f->outcome;
}

MoverOutcome walk_run(WalkFixture *f)
{
    return walk_run_part(f, 0, 1);
}

size_t walk_pages(const WalkFixture *f, uint64_t bytes)
{
    return (size_t)(bytes / f->machine.page_bytes);
}

uint64_t walk_refused(const WalkFixture *f)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < MOVER_REASON_MAX; i++)
        sum += f->account.refused_bytes[i];
    return sum;
}
