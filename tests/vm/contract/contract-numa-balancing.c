/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What the kernel's own NUMA balancing reports for a task: faults by node and the preferred node in
 * /proc/PID/sched, and its group, Ngid, in /proc/PID/status. */

#include "balancing.h"
#include "memory.h"

#include <pthread.h>
#include <sys/syscall.h>

#define N_PAGES 2048U

/* Two threads that continually write and read the same pages. */
typedef struct Pair {
    volatile pid_t tid[2];
    char *pages;
    unsigned from; /* the node they start on */
    volatile bool go;
} Pair;

static Pair *pair;

static void *pair_thread(void *userdata)
{
    volatile pid_t *tid = userdata;

    *tid = gettid();
    while (!pair->go)
        nap();
    for (;;)
        for (size_t i = 0; i < N_PAGES; i++)
            ((volatile char *)pair->pages)[i * PAGE]++;
    return NULL;
}

/* The child touches its pages itself. Pages shared with a parent may be copied, to the node where the copying
 * thread runs. */
static void pair_main(void *userdata)
{
    unsigned long from = (unsigned long)BIT(pair->from);
    pthread_t thread;

    if (syscall(SYS_set_mempolicy, MPOL_BIND, &from, 65UL) < 0)
        _exit(1);
    pages_touch(pair->pages, N_PAGES);
    if (syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0UL) < 0)
        _exit(1);
    if (pthread_create(&thread, NULL, pair_thread, (void *)&pair->tid[1]) != 0)
        _exit(1);
    (void)pair_thread((void *)&pair->tid[0]);
}

static bool pair_ready(void *userdata)
{
    return pair->tid[0] > 0 && pair->tid[1] > 0;
}

/* Nodes with CPUs and memory. */
static uint64_t whole_nodes(void)
{
    return memory_nodes() & file_list("/sys/devices/system/node/has_cpu");
}

/* Starts the pair on the CPUs of `on`, with its memory on `from`. */
static pid_t begin(unsigned on, unsigned from, const char *mode)
{
    uint64_t cpus = file_list("/sys/devices/system/node/node%u/cpulist", on);
    pid_t pid;

    assert_int_equal(balancing_set(mode), 0);
    pair = shared_alloc(sizeof(*pair));
    pair->pages = pages_map(N_PAGES);
    pair->from = from;
    pid = child_start(pair_main, NULL);
    assert_true(eventually(pair_ready, NULL));
    assert_int_equal(pages_count(pid, pair->pages, N_PAGES, (int)from), N_PAGES);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(mask_set(pair->tid[i], cpus), 0);
    pair->go = true;
    return pid;
}

static void need_two_nodes(void)
{
    need_balancing();
    if (bit_count(whole_nodes()) < 2)
        contract_skip("two nodes with CPUs and memory are needed");
}

static int64_t sched_number(pid_t tid, const char *key)
{
    const char *text = file_read("/proc/%d/sched", tid);
    int64_t v = -2;

    assert_non_null(text);
    return text_number(text, key, &v) ? v : -2;
}

static int64_t ngid(pid_t tid)
{
    int64_t v = -1;

    assert_true(text_number(file_read("/proc/%d/status", tid), "Ngid", &v));
    return v;
}

typedef struct Wanted {
    pid_t pid;
    unsigned node;
} Wanted;

static bool has_moved(void *userdata)
{
    const Wanted *wanted = userdata;

    return pages_count(wanted->pid, pair->pages, N_PAGES, (int)wanted->node) > N_PAGES * 9 / 10;
}

static bool has_preference(void *userdata)
{
    const Wanted *wanted = userdata;

    for (unsigned i = 0; i < 2; i++)
        if (sched_number(pair->tid[i], "numa_preferred_nid") != (int64_t)wanted->node ||
            sched_number(pair->tid[i], "total_numa_faults") <= 0 || ngid(pair->tid[i]) <= 0)
            return false;
    return ngid(pair->tid[0]) == ngid(pair->tid[1]);
}

static bool is_numa_line(const char *text, unsigned node)
{
    unsigned long v[4], n = 99;
    char key[64];

    (void)snprintf(key, sizeof(key), "\nnuma_faults node=%u ", node);
    text = strstr(text, key);
    return text &&
           sscanf(
               text,
               "\nnuma_faults node=%lu task_private=%lu task_shared=%lu group_private=%lu group_shared=%lu",
               &n, &v[0], &v[1], &v[2], &v[3]) == 5 &&
           n == node;
}

/* Memory moves to the threads, each thread prefers that node, and both are in one group, whose id is that of
 * one of them. */
static void test_told(void **state)
{
    Wanted wanted;
    unsigned from;

    need_two_nodes();
    from = bit_first(whole_nodes());
    wanted.node = bit_last(whole_nodes());
    wanted.pid = begin(wanted.node, from, "1");
    assert_true(eventually(has_moved, &wanted));
    assert_true(eventually(has_preference, &wanted));
    assert_true(ngid(pair->tid[0]) == pair->tid[0] || ngid(pair->tid[0]) == pair->tid[1]);
    assert_true(sched_number(pair->tid[0], "mm->numa_scan_seq") > 0);
    for (unsigned i = 0; i < 2; i++) {
        const char *text = file_read("/proc/%d/sched", pair->tid[i]);

        assert_true(is_numa_line(text, from));
        assert_true(is_numa_line(text, wanted.node));
        assert_non_null(strstr(text, "numa_group_id="));
    }
}

static bool has_run(void *userdata)
{
    uint64_t v[3];

    return task_schedstat(pair->tid[1], v) && v[0] > UINT64_C(2000000000);
}

/* When balancing is off, none of this happens. */
static void test_switched_off(void **state)
{
    Wanted wanted;
    unsigned from;

    need_two_nodes();
    if (!file_read("/proc/self/schedstat"))
        contract_skip("no /proc/PID/schedstat");
    from = bit_first(whole_nodes());
    wanted.pid = begin(bit_last(whole_nodes()), from, "0");
    assert_true(eventually(has_run, NULL));
    assert_int_equal(pages_count(wanted.pid, pair->pages, N_PAGES, (int)from), N_PAGES);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(ngid(pair->tid[i]), 0);
        assert_int_equal(sched_number(pair->tid[i], "total_numa_faults"), 0);
        assert_int_equal(sched_number(pair->tid[i], "numa_preferred_nid"), -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_told, children_teardown),
        cmocka_unit_test_teardown(test_switched_off, children_teardown),
    };

    return cmocka_run_group_tests_name("contract-numa-balancing", tests, balancing_setup, balancing_teardown);
}
