/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A process of four threads on two nodes, and their access samples. */

#include "unit-test.h"
#include "world/touches.h"

#define BLOCK TOUCHES_BLOCK_BYTES

static Touches touches;

static int setup(void **state)
{
    touches_init(&touches, 2);
    for (pid_t tid = 11; tid <= 14; tid++)
        assert_int_equal(touches_add_thread(&touches, (TaskKey){11, tid, 5}), 0);
    return 0;
}

static int teardown(void **state)
{
    touches_done(&touches);
    return 0;
}

/* Threads 11 and 12 run on node 0, 13 and 14 on node 1. */
static void touch(pid_t tid, uint64_t address)
{
    const Touch value = {address, tid, {tid <= 12 ? 0 : 1}};

    assert_int_equal(touches_add(&touches, &value), 0);
}
