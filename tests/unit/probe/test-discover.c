/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What changes between discoveries, in synthetic trees. */

#include "probe-test.h"

/* Enough passes for every process to have its turn in the rolling check. */
static void discover_all(Bench *b)
{
    for (int i = 0; i < 8; i++)
        bench_discover(b);
}

static void test_asked_once(void **state)
{
    CLEANUP(bench_close) Bench b = bench_make();

    put_process(&b, &(FakeTask){.pid = 100});
    put_process(&b, &(FakeTask){.pid = 101});
    put_process(&b, &(FakeTask){.pid = 102});
    bench_start(&b, NULL);
    b.decision = PROBE_DECISION_IGNORE;
    b.except = 101;
    b.except_decision = PROBE_DECISION_LATER;
    bench_discover(&b);
    assert_int_equal(b.n_asked, 3);
    discover_all(&b);
    assert_int_equal(b.n_asked, 3 + 8); /* LATER every time, IGNORE never */
    assert_int_equal(b.world->n_processes, 0);

    b.except_decision = PROBE_DECISION_TAKE;
    bench_discover(&b);
    discover_all(&b);
    assert_int_equal(b.n_asked, 3 + 9);
    assert_int_equal(b.world->n_processes, 1);

    probe_set_wants(b.probe, 0);
    bench_discover(&b);
    assert_int_equal(b.n_asked, 3 + 9 + 3);
    bench_discover(&b);
    assert_int_equal(b.n_asked, 3 + 9 + 3);
}

/* After exec() and after a move to another cgroup the policy is asked again. */
static void test_identity_changes(void **state)
{
    CLEANUP(bench_close) Bench b = bench_make();

    put_process(&b, &(FakeTask){.pid = 100, .comm = "sh"});
    bench_start(&b, NULL);
    b.except = 100;
    b.except_decision = PROBE_DECISION_IGNORE;
    bench_discover(&b);
    put_process(&b, &(FakeTask){.pid = 100, .comm = "java"});
    discover_all(&b);
    assert_int_equal(b.n_asked, 2);
    assert_string_equal(b.last.comm, "java");

    put_process(&b, &(FakeTask){.pid = 100, .comm = "java", .cgroup = "/b.slice/b.service"});
    b.except_decision = PROBE_DECISION_TAKE;
    discover_all(&b);
    assert_int_equal(b.n_asked, 3);
    assert_string_equal(bench_process(&b, 100)->unit, "b.service");

    /* The same holds for a process in the World: its new name is seen at once. */
    put_process(&b, &(FakeTask){.pid = 100, .comm = "other", .cgroup = "/b.slice/b.service"});
    bench_discover(&b);
    assert_int_equal(b.n_asked, 4);
    assert_string_equal(bench_process(&b, 100)->comm, "other");
    assert_string_equal(bench_task(&b, 100, 100)->comm, "other");
}

/* A process whose cgroup cannot be read stays as it is. It is not taken to be in the root. */
static void test_cgroup_is_unreadable(void **state)
{
    CLEANUP(bench_close) Bench b = bench_make();

    put_process(&b, &(FakeTask){.pid = 100});
    bench_start(&b, NULL);
    bench_discover(&b);
    assert_int_equal(b.n_asked, 1);
    take_away(&b, "proc/100/cgroup");
    put(&b, "proc/100/cgroup/x", "reading a directory fails");
    discover_all(&b);
    assert_int_equal(b.n_asked, 1);
    assert_string_equal(bench_process(&b, 100)->unit, "app.service");
}

/* Whatever its PID, a process that was seen between fork and exec is known by its program at the next discovery. */
static void test_met_before_exec(void **state)
{
    CLEANUP(bench_close) Bench b = bench_make();

    for (pid_t pid = 100; pid < 108; pid++)
        put_process(&b, &(FakeTask){.pid = pid, .comm = "sh"});
    bench_start(&b, NULL);
    b.decision = PROBE_DECISION_IGNORE;
    bench_discover(&b);
    assert_int_equal(b.n_asked, 8);
    for (pid_t pid = 100; pid < 108; pid++)
        put_process(&b, &(FakeTask){.pid = pid, .comm = "java"});
    b.decision = PROBE_DECISION_TAKE;
    bench_discover(&b);
    assert_int_equal(b.n_asked, 16);
    assert_int_equal(b.world->n_processes, 8);
}

/* A process that was seen in several passes before exec(2) is still checked outside its turn. */
static void test_long_before_exec(void **state)
{
    CLEANUP(bench_close) Bench b = bench_make();
    pid_t pid;

    bench_start(&b, NULL);
    bench_discover(&b);
    b.decision = PROBE_DECISION_IGNORE;
    for (pid = 100; pid < 108; pid++)
        put_process(&b, &(FakeTask){.pid = pid, .comm = "sh"});
    bench_discover(&b);
    bench_discover(&b);
    assert_int_equal(b.n_asked, 16); /* the command line may have changed after the name */
    for (pid = 100; pid < 108; pid++)
        put_process(&b, &(FakeTask){.pid = pid, .comm = "java"});
    b.decision = PROBE_DECISION_TAKE;
    b.now += 60 * SEC; /* passes may be far apart */
    bench_discover(&b);
    assert_int_equal(b.n_asked, 24);
    assert_int_equal(b.world->n_processes, 8);
}

static void test_wants(void **state)
{
    CLEANUP(bench_close) Bench b = bench_make();

    put_process(&b, &(FakeTask){.pid = 100});
    put(&b, "proc/100/environ", "A=1");
    {
        int fd = openat(b.root_fd, "proc/100", O_RDONLY | O_DIRECTORY | O_CLOEXEC), f;

        assert_int_equal(symlinkat("/usr/bin/some program", fd, "exe"), 0);
        f = openat(fd, "cmdline", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        assert_int_equal(write(f, "prog\0-x\0a b\0", 12), 12);
        (void)close(f);
        f = openat(fd, "environ", O_WRONLY | O_CLOEXEC);
        assert_int_equal(write(f, "A=1\0B=2\0", 8), 8);
        (void)close(f);
        (void)close(fd);
    }
    bench_start(&b, NULL);
    b.except = 100;
    bench_discover(&b);
    assert_null(b.last.exe);
    assert_null(b.last.command_line);
    assert_null(b.last.environment);

    probe_set_wants(b.probe, PROBE_WANTS_EXE | PROBE_WANTS_COMMAND_LINE | PROBE_WANTS_ENVIRONMENT);
    bench_discover(&b);
    assert_string_equal(b.last.exe, "/usr/bin/some program");
    assert_string_equal(b.last.command_line, "prog -x a b");
    assert_int_equal(b.last.environment_len, 8);
    assert_memory_equal(b.environment, "A=1\0B=2\0", 8);

    /* As in exec(2). */
    put_process(&b, &(FakeTask){.pid = 101});
    put(&b, "proc/101/environ", "%s", "");
    b.except = 101;
    bench_discover(&b);
    assert_int_equal(b.last.pid, 101);
    assert_null(b.last.environment);
}

static void test_pid_is_reused(void **state)
{
    CLEANUP(bench_close) Bench b = bench_make();

    put_process(&b, &(FakeTask){.pid = 100, .start = 1000});
    bench_start(&b, NULL);
    bench_discover(&b);
    assert_int_equal(bench_process(&b, 100)->start_ticks, 1000);

    put_process(&b, &(FakeTask){.pid = 100, .start = 2000});
    bench_discover(&b);
    assert_null(world_process(b.world, 100));
    bench_discover(&b);
    assert_int_equal(bench_process(&b, 100)->start_ticks, 2000);
    assert_int_equal(bench_task(&b, 100, 100)->start_ticks, 2000);
    assert_int_equal(b.n_asked, 2);
}

static void test_ignored_pid_is_reused(void **state)
{
    CLEANUP(bench_close) Bench b = bench_make();

    put_process(&b, &(FakeTask){.pid = 100, .flags = 0x00200000}); /* a kernel thread */
    bench_start(&b, NULL);
    bench_discover(&b);
    assert_int_equal(b.n_asked, 0);
    put_process(&b, &(FakeTask){.pid = 100, .start = 2000});
    discover_all(&b);
    assert_int_equal(b.n_asked, 1);
    assert_non_null(world_process(b.world, 100));
}

static void test_threads_come_and_go(void **state)
{
    CLEANUP(bench_close) Bench b = bench_make();

    put_process(&b, &(FakeTask){.pid = 100});
    bench_start(&b, NULL);
    bench_discover(&b);
    assert_int_equal(b.world->n_tasks, 1);

    put_process(&b, &(FakeTask){.pid = 100, .n_threads = 3});
    put_thread(&b, &(FakeTask){.pid = 100, .tid = 90, .n_threads = 3}); /* TIDs have wrapped around */
    put_thread(&b, &(FakeTask){.pid = 100, .tid = 120, .n_threads = 3});
    bench_discover(&b);
    assert_int_equal(b.world->n_tasks, 3);
    assert_int_equal(b.world->tasks[0].tid, 90);
    assert_int_equal(b.world->tasks[2].tid, 120);

    /* One thread ends, another begins: their number is unchanged. The next sample notices the missing one. */
    take_away(&b, "proc/100/task/120");
    put_thread(&b, &(FakeTask){.pid = 100, .tid = 130, .n_threads = 3});
    bench_task(&b, 100, 120)->gone = true;
    bench_discover(&b);
    assert_int_equal(b.world->n_tasks, 3);
    assert_null(world_task_by_tid(b.world, 100, 120));
    assert_non_null(bench_task(&b, 100, 130));

    take_away(&b, "proc/100");
    bench_discover(&b);
    assert_int_equal(b.world->n_processes, 0);
    assert_int_equal(b.world->n_tasks, 0);
    assert_int_equal(probe_statistics(b.probe)->n_kept_open, 0);
}

static void test_tid_is_reused(void **state)
{
    CLEANUP(bench_close) Bench b = bench_make();

    put_process(&b, &(FakeTask){.pid = 100, .n_threads = 2});
    put_thread(&b, &(FakeTask){.pid = 100, .tid = 101, .n_threads = 2, .start = 5});
    bench_start(&b, NULL);
    bench_discover(&b);
    put_thread(&b, &(FakeTask){.pid = 100, .tid = 101, .n_threads = 2, .start = 7, .comm = "new"});
    bench_discover(&b); /* start time 5 is gone */
    bench_discover(&b);
    assert_int_equal(bench_task(&b, 100, 101)->start_ticks, 7);
    assert_string_equal(bench_task(&b, 100, 101)->comm, "new");
}

/* The policy does not want the process now: it stays until the daemon's masks are removed. */
static void dismiss(ProbeDecision decision)
{
    CLEANUP(bench_close) Bench b = bench_make();

    put_process(&b, &(FakeTask){.pid = 100});
    put_process(&b, &(FakeTask){.pid = 101});
    bench_start(&b, NULL);
    bench_discover(&b);
    bench_task(&b, 100, 100)->original = bench_task(&b, 100, 100)->allowed;

    b.decision = decision;
    probe_set_wants(b.probe, 0);
    for (int i = 0; i < 10; i++) {
        bench_discover(&b);
        assert_int_equal(bench_process(&b, 100)->workload.i, -1);
        assert_int_equal(bench_process(&b, 100)->group.i, -1);
        assert_null(world_process(b.world, 101));
    }
    bench_task(&b, 100, 100)->original = NULL;
    bench_discover(&b);
    assert_null(world_process(b.world, 100));
    assert_int_equal(b.n_asked, decision == PROBE_DECISION_IGNORE ? 4 : 2 + 11 * 2);

    b.decision = PROBE_DECISION_TAKE;
    bench_discover(&b);
    assert_int_equal(b.world->n_processes, decision == PROBE_DECISION_LATER ? 2 : 0);
}

static void test_dismissed(void **state)
{
    dismiss(PROBE_DECISION_IGNORE);
    dismiss(PROBE_DECISION_LATER);
}

static void test_process_numbers(void **state)
{
    CLEANUP(bench_close) Bench b = bench_make();

    put_process(&b, &(FakeTask){.pid = 100, .ticks = 500});
    bench_start(&b, NULL);
    b.except = 100;
    b.except_decision = PROBE_DECISION_LATER;
    bench_discover(&b);
    assert_int_equal(b.last.cpu_permille, 0);
    put_process(&b, &(FakeTask){.pid = 100, .ticks = 650}); /* 1.5 s in one second */
    b.except_decision = PROBE_DECISION_TAKE;
    bench_discover(&b);
    assert_int_equal(b.last.cpu_permille, 1500);
    assert_int_equal(bench_process(&b, 100)->cpu_permille, 1500);
    put_process(&b, &(FakeTask){.pid = 100, .ticks = 675});
    bench_discover(&b);
    assert_int_equal(bench_process(&b, 100)->cpu_permille, 250);
}

static void test_hotplug(void **state)
{
    CLEANUP(bench_close) Bench b = bench_make();
    hwloc_bitmap_t reserved = hwloc_bitmap_alloc();

    put(&b, "sys/devices/system/cpu/isolated", "3\n");
    put_process(&b, &(FakeTask){.pid = 100, .mask = "0-2"}); /* the mask that isolcpus= leaves to all tasks */
    hwloc_bitmap_set(reserved, 0);
    bench_start(&b, &(ProbeOptions){.reserved = reserved});
    hwloc_bitmap_free(reserved);
    bench_discover(&b);
    assert_false(b.world->cpus[0].usable); /* reserved */
    assert_true(b.world->cpus[0].online);
    assert_true(b.world->cpus[1].usable);
    assert_false(b.world->cpus[3].usable); /* isolated */
    assert_true(b.world->cpus[3].online);
    assert_int_equal(bench_task(&b, 100, 100)->hands, TASK_HANDS_FREE);
    assert_false(probe_topology_changed(b.probe));

    put(&b, "sys/devices/system/cpu/online", "0,2-3\n");
    assert_true(probe_topology_changed(b.probe));
    assert_false(probe_topology_changed(b.probe));
    bench_discover(&b);
    assert_false(b.world->cpus[1].online);
    assert_false(b.world->cpus[1].usable);
    assert_list(bench_process(&b, 100)->cpuset, "0,2-3");
    assert_int_equal(bench_task(&b, 100, 100)->hands, TASK_HANDS_FREE);

    put(&b, "sys/devices/system/cpu/online", "0-3\n");
    assert_true(probe_topology_changed(b.probe));
    bench_discover(&b);
    assert_true(b.world->cpus[1].usable);
}

/* A node that has only memory. */
static void test_memory_comes_and_goes(void **state)
{
    CLEANUP(bench_close) Bench b = bench_make();

    put(&b, "sys/devices/system/node/has_memory", "0-1\n");
    bench_start(&b, NULL);
    assert_false(probe_topology_changed(b.probe));
    put(&b, "sys/devices/system/node/has_memory", "0-2\n");
    assert_true(probe_topology_changed(b.probe));
    assert_false(probe_topology_changed(b.probe));
    put(&b, "sys/devices/system/node/has_memory", "0-1\n");
    assert_true(probe_topology_changed(b.probe));
}

static void test_own_cpuset_changes(void **state)
{
    CLEANUP(bench_close) Bench b = bench_make();

    put_process(&b, &(FakeTask){.pid = 50, .cgroup = "/numaplace.slice"});
    put(&b, "sys/fs/cgroup/numaplace.slice/cpuset.cpus.effective", "0-3\n");
    bench_start(&b, &(ProbeOptions){.self = 50});
    assert_false(probe_topology_changed(b.probe));
    put(&b, "sys/fs/cgroup/numaplace.slice/cpuset.cpus.effective", "0-1\n");
    assert_true(probe_topology_changed(b.probe));
    assert_false(probe_topology_changed(b.probe));
}

/* A CPU that comes online while a topology is loaded is not in it, and a Probe made afterwards must not take
 * it for known. */
static void test_cpus_change_before_a_new_probe(void **state)
{
    CLEANUP(bench_close) Bench b = bench_make();
    Probe *before;

    put(&b, "sys/devices/system/cpu/online", "0-1\n");
    bench_start(&b, NULL);
    put(&b, "sys/devices/system/cpu/online", "0-2\n");
    assert_true(probe_topology_changed(b.probe)); /* loads the topology, with three CPUs */
    put(&b, "sys/devices/system/cpu/online", "0-3\n");
    before = b.probe;
    b.world = world_free(b.world);
    bench_start(&b, NULL);
    assert_int_equal(probe_topology_adopt(b.probe, before), 0);
    probe_free(before);
    assert_true(probe_topology_changed(b.probe));
    assert_false(probe_topology_changed(b.probe));
}

/* A new World is filled from the start, and the old one's descriptors are closed. */
static void test_world_is_replaced(void **state)
{
    CLEANUP(bench_close) Bench b = bench_make();

    put_process(&b, &(FakeTask){.pid = 100});
    put_process(&b, &(FakeTask){.pid = 200});
    bench_start(&b, NULL);
    bench_discover(&b);
    bench_sample(&b);
    b.world = world_free(b.world);
    b.world = bench_world();
    bench_discover(&b);
    assert_int_equal(b.world->n_tasks, 2);
    assert_int_equal(probe_statistics(b.probe)->n_kept_open, 2);
    bench_sample(&b);
    bench_sample(&b);
    assert_false(bench_task(&b, 200, 200)->fresh);
}

/* Processes that are forked all day leave nothing behind. */
static void test_no_growth(void **state)
{
    CLEANUP(bench_close) Bench b = bench_make();
    size_t pool = 0;

    bench_start(&b, NULL);
    for (pid_t round = 0; round < 40; round++) {
        for (pid_t i = 0; i < 20; i++) {
            pid_t pid = 1000 + (round * 20 + i) * 7;
            char comm[16], cgroup[64], path[64];

            (void)snprintf(comm, sizeof(comm), "name-%d", (int)pid);
            (void)snprintf(cgroup, sizeof(cgroup), "/x.slice/x-%d.scope", (int)pid);
            put_process(&b, &(FakeTask){.pid = pid, .comm = comm, .cgroup = cgroup});
            if (round > 0) {
                (void)snprintf(path, sizeof(path), "proc/%d", (int)(pid - 20 * 7));
                take_away(&b, path);
            }
        }
        bench_discover(&b);
        bench_sample(&b);
        assert_int_equal(b.world->n_tasks, 20);
        assert_int_equal(b.world->n_groups, 20);
        assert_int_equal(probe_statistics(b.probe)->n_kept_open, 20);
        if (round == 0)
            pool = intern_pool_size(b.world->pool);
        assert_int_equal(intern_pool_size(b.world->pool), pool);
    }
}

static void glance(Bench *b, const char *loadavg)
{
    put(b, "proc/loadavg", "%s", loadavg);
    probe_glance(b->probe);
}

static void test_newcomers(void **state)
{
    CLEANUP(bench_close) Bench b = bench_make();

    put(&b, "proc/loadavg", "0.20 0.18 0.12 1/80 11206\n");
    bench_start(&b, NULL);
    bench_discover(&b);
    assert_false(probe_newcomers(b.probe));
    glance(&b, "1.20 0.18 0.12 2/80 11206\n");
    assert_false(probe_newcomers(b.probe));
    glance(&b, "1.20 0.18 0.12 2/80 117\n");
    assert_true(probe_newcomers(b.probe));
    bench_discover(&b);
    assert_false(probe_newcomers(b.probe));

    /* A process that begins between the glance and the listing is new at the next glance. */
    glance(&b, "1.20 0.18 0.12 2/80 117\n");
    put(&b, "proc/loadavg", "1.20 0.18 0.12 2/80 118\n");
    bench_discover(&b);
    probe_glance(b.probe);
    assert_true(probe_newcomers(b.probe));
    bench_discover(&b);
    assert_false(probe_newcomers(b.probe));

    /* Four CPUs. One of the five runnable tasks is the one that reads the file. */
    glance(&b, "1.20 0.18 0.12 4/80 117\n");
    assert_true(probe_room(b.probe, b.world, 0));
    glance(&b, "1.20 0.18 0.12 5/80 117\n");
    assert_false(probe_room(b.probe, b.world, 0));
    /* Three of the runnable tasks wait for CPUs that others use. */
    glance(&b, "1.20 0.18 0.12 7/80 117\n");
    assert_true(probe_room(b.probe, b.world, 3));
    glance(&b, "1.20 0.18 0.12 8/80 117\n");
    assert_false(probe_room(b.probe, b.world, 3));
    glance(&b, "many\n");
    assert_false(probe_newcomers(b.probe));
    assert_false(probe_room(b.probe, b.world, 0));

    /* It is read ten times a second, so it stays open. */
    put(&b, "proc/loadavg", "1.20 0.18 0.12 2/80 119\n");
    take_away(&b, "proc/loadavg");
    probe_glance(b.probe);
    assert_true(probe_newcomers(b.probe));
}

static void assert_born(const Bench *b, const char *expected)
{
    char text[128] = "";
    size_t n;
    const TaskKey *born = probe_born(b->probe, &n);

    for (size_t i = 0; i < n; i++) {
        assert_int_equal(born[i].tid, 0);
        (void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "%d/%u ", (int)born[i].pid,
                       (unsigned)born[i].start_ticks);
    }
    assert_string_equal(text, expected);
}

/* Each process is reported once, whether or not a policy wants it, except kernel threads. */
static void test_born(void **state)
{
    CLEANUP(bench_close) Bench b = bench_make();

    put_process(&b, &(FakeTask){.pid = 100, .start = 1000});
    put_process(&b, &(FakeTask){.pid = 101, .start = 1000, .flags = 0x00200000});
    bench_start(&b, NULL);
    b.decision = PROBE_DECISION_IGNORE;
    bench_discover(&b);
    assert_born(&b, "100/1000 ");
    bench_discover(&b);
    assert_born(&b, "");
    put_process(&b, &(FakeTask){.pid = 102, .start = 2000});
    put_process(&b, &(FakeTask){.pid = 90, .start = 2000});
    bench_discover(&b);
    assert_born(&b, "90/2000 102/2000 ");

    /* A process with a reused PID is another one, as soon as that is seen. */
    b.decision = PROBE_DECISION_TAKE;
    put_process(&b, &(FakeTask){.pid = 103, .start = 2000});
    bench_discover(&b);
    assert_born(&b, "103/2000 ");
    take_away(&b, "proc/103");
    bench_discover(&b);
    put_process(&b, &(FakeTask){.pid = 103, .start = 3000});
    bench_discover(&b);
    assert_born(&b, "103/3000 ");
}

/* Files that are read in every discovery stay open, and are read anew. */
static void test_lists_of_cpus_stay_open(void **state)
{
    CLEANUP(bench_close) Bench b = bench_make();

    put(&b, "sys/devices/system/cpu/online", "0-3\n");
    put(&b, "sys/devices/system/cpu/isolated", "\n");
    bench_start(&b, NULL);
    bench_discover(&b);
    assert_true(b.world->cpus[2].usable);
    assert_true(b.world->cpus[3].online);
    put(&b, "sys/devices/system/cpu/online", "0-2\n");
    put(&b, "sys/devices/system/cpu/isolated", "2\n");
    take_away(&b, "sys/devices/system/cpu/online");
    take_away(&b, "sys/devices/system/cpu/isolated");
    bench_discover(&b);
    assert_true(b.world->cpus[2].online);
    assert_false(b.world->cpus[2].usable);
    assert_false(b.world->cpus[3].online);
}

/* The listing of /proc is reused while no new PID is assigned, but not for long. Processes that have ended
 * are found without it. */
static void test_listed_when_somebody_began(void **state)
{
    CLEANUP(bench_close) Bench b = bench_make();

    put(&b, "proc/loadavg", "0.20 0.18 0.12 1/80 100\n");
    put_process(&b, &(FakeTask){.pid = 100});
    bench_start(&b, NULL);
    bench_discover(&b); /* the first pass */
    assert_int_equal(b.world->n_processes, 1);
    put_process(&b, &(FakeTask){.pid = 101});
    bench_discover(&b);
    assert_int_equal(b.world->n_processes, 1);
    put(&b, "proc/loadavg", "0.20 0.18 0.12 1/80 101\n");
    bench_discover(&b); /* the third */
    assert_int_equal(b.world->n_processes, 2);
    put_process(&b, &(FakeTask){.pid = 102});
    for (unsigned pass = 4; pass < 16; pass++) {
        bench_discover(&b);
        assert_int_equal(b.world->n_processes, 2);
    }
    bench_discover(&b); /* without a new PID */
    assert_int_equal(b.world->n_processes, 3);
    take_away(&b, "proc/100");
    bench_discover(&b);
    assert_int_equal(b.world->n_processes, 2);
    bench_discover(&b);
    assert_int_equal(b.world->n_processes, 2);
}

TEST_MAIN(NULL, NULL, test_asked_once, test_identity_changes, test_cgroup_is_unreadable, test_met_before_exec,
          test_long_before_exec, test_wants, test_pid_is_reused, test_ignored_pid_is_reused,
          test_threads_come_and_go, test_tid_is_reused, test_dismissed, test_process_numbers, test_hotplug,
          test_memory_comes_and_goes, test_own_cpuset_changes, test_cpus_change_before_a_new_probe,
          test_world_is_replaced, test_no_growth, test_newcomers, test_born, test_lists_of_cpus_stay_open,
          test_listed_when_somebody_began)
