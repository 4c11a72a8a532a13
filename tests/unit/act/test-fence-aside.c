/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Lists of memory nodes, written in a thread of their own. The writer blocks until it is let go. */

#include "act/fence/aside.h"
#include "base/parse.h"
#include "unit-test.h"

#include <errno.h>
#include <unistd.h>

/* Long enough that only a thread that hangs exceeds it. */
#define WAIT_USEC (600U * 1000000U)

typedef struct Gate {
    FenceAside *aside;
    int begun[2], go[2]; /* pipes: a byte for each write that has begun, and for each that may end */
    char written[256];
    int result;
} Gate;

static int write_slowly(void *context, const char *name, hwloc_const_bitmap_t set)
{
    Gate *gate = context;
    CLEANUP_FREE char *list = format_list(set, PARSE_CPU_MAX);
    char byte = 0;

    if (!list || write(gate->begun[1], &byte, 1) != 1 || read(gate->go[0], &byte, 1) != 1)
        return -EIO;
    (void)snprintf(gate->written + strlen(gate->written), sizeof(gate->written) - strlen(gate->written),
                   "%s=%s;", name, list);
    return gate->result;
}

static int setup(void **state)
{
    static Gate gate;

    gate = (Gate){0};
    if (pipe(gate.begun) < 0 || pipe(gate.go) < 0)
        return -1;
    gate.aside = fence_aside_new(write_slowly, &gate);
    *state = &gate;
    return gate.aside ? 0 : -1;
}

static int teardown(void **state)
{
    Gate *gate = *state;

    (void)fence_aside_free(gate->aside);
    for (int i = 0; i < 2; i++) {
        (void)close(gate->begun[i]);
        (void)close(gate->go[i]);
    }
    return 0;
}

static void set(Gate *gate, const char *name, const char *list)
{
    CLEANUP_BITMAP hwloc_bitmap_t nodes = hwloc_bitmap_alloc();

    assert_int_equal(parse_list(list, PARSE_CPU_MAX, nodes), 0);
    assert_int_equal(fence_ops_aside.set(gate->aside, name, nodes), 0);
}

static void await_begin(Gate *gate)
{
    char byte;

    assert_int_equal(read(gate->begun[0], &byte, 1), 1);
}

static void let_go(Gate *gate, size_t n)
{
    for (size_t i = 0; i < n; i++)
        assert_int_equal(write(gate->go[1], "", 1), 1);
}

static int result(Gate *gate, const char *name)
{
    return fence_ops_aside.result(gate->aside, name);
}

static void await_all(Gate *gate)
{
    fence_ops_aside.wait(gate->aside, WAIT_USEC);
}

static void test_nobody_waits(void **state)
{
    Gate *gate = *state;

    assert_int_equal(result(gate, "/a"), 0);
    set(gate, "/a", "0");
    set(gate, "/b", "1");
    await_begin(gate);
    assert_int_equal(result(gate, "/a"), -EINPROGRESS);
    assert_int_equal(result(gate, "/b"), -EINPROGRESS);
    fence_ops_aside.wait(gate->aside, 1000);
    assert_int_equal(result(gate, "/a"), -EINPROGRESS);
    let_go(gate, 2);
    await_all(gate);
    assert_int_equal(result(gate, "/a"), 0);
    assert_int_equal(result(gate, "/b"), 0);
    assert_string_equal(gate->written, "/a=0;/b=1;");
}

/* A list that arrives during a write is written after it; of several, only the last. */
static void test_last_one(void **state)
{
    Gate *gate = *state;

    set(gate, "/a", "0");
    await_begin(gate);
    set(gate, "/a", "1");
    set(gate, "/a", "0-1");
    let_go(gate, 1);
    await_begin(gate);
    assert_int_equal(result(gate, "/a"), -EINPROGRESS);
    let_go(gate, 1);
    await_all(gate);
    assert_string_equal(gate->written, "/a=0;/a=0-1;");
    assert_int_equal(result(gate, "/a"), 0);
}

static void test_refused(void **state)
{
    Gate *gate = *state;

    gate->result = -ENOSPC;
    set(gate, "/a", "0");
    let_go(gate, 1);
    await_all(gate);
    assert_int_equal(result(gate, "/a"), -ENOSPC);
    fence_ops_aside.forget(gate->aside, "/a");
    assert_int_equal(result(gate, "/a"), 0);
}

/* The write under way completes all the same, and a later set() makes the name known again. */
static void test_forgotten(void **state)
{
    Gate *gate = *state;

    set(gate, "/a", "0");
    await_begin(gate);
    fence_ops_aside.forget(gate->aside, "/a");
    let_go(gate, 1);
    await_all(gate);
    assert_string_equal(gate->written, "/a=0;");
    gate->result = -ENOENT;
    set(gate, "/a", "1");
    await_begin(gate);
    fence_ops_aside.forget(gate->aside, "/a");
    set(gate, "/a", "2");
    let_go(gate, 2);
    await_all(gate);
    assert_string_equal(gate->written, "/a=0;/a=1;/a=2;");
    assert_int_equal(result(gate, "/a"), -ENOENT);
}

/* Freeing waits for the write under way. */
static void test_end(void **state)
{
    Gate *gate = *state;

    set(gate, "/a", "0");
    set(gate, "/b", "1");
    await_begin(gate);
    let_go(gate, 2); /* the next one need not begin */
    gate->aside = fence_aside_free(gate->aside);
    assert_memory_equal(gate->written, "/a=0;", strlen("/a=0;"));
}

TEST_MAIN(setup, teardown, test_nobody_waits, test_last_one, test_refused, test_forgotten, test_end)
