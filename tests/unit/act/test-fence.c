/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Fences on a made-up tree of cgroups: when they go up and come down, whose value is put back, and where there can be none. */

#include "act/fence-place.h"
#include "act/fence.h"
#include "act/journal.h"
#include "base/parse.h"

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#define V2 "sys/fs/cgroup/"
#define V1 "sys/fs/cgroup/cpuset/"

typedef struct Tree {
    char directory[64];
    char journal_path[128];
    int root_fd;
    Topology *topology;
    World *world;
    Journal *journal;
    Fences *fences;
    ActWish wish;
    /* A service manager that answers when it is told to. */
    char asked[512];
    int result;
} Tree;

static void write_file(const Tree *t, const char *path, const char *text)
{
    char up[PATH_MAX];
    int fd;

    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        (void)snprintf(up, sizeof(up), "%.*s", (int)(slash - path), path);
        assert_true(mkdirat(t->root_fd, up, 0755) == 0 || errno == EEXIST);
    }
    fd = openat(t->root_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    (void)close(fd);
}

/* What writing to a file of cgroups leaves in it: here the rest of a longer text before would stay. */
static int set_file(Tree *t, const char *base, const char *path, hwloc_const_bitmap_t cpus)
{
    CLEANUP_FREE char *list = format_list(cpus, PARSE_CPU_MAX);
    char file[PATH_MAX];

    assert_non_null(list);
    (void)snprintf(file, sizeof(file), "%s%s/cpuset.cpus", base, path + 1);
    if (faccessat(t->root_fd, file, F_OK, 0) != 0)
        return -ENOENT;
    write_file(t, file, list);
    return 0;
}

static int set_v1(void *context, const char *path, hwloc_const_bitmap_t cpus)
{
    return set_file(context, V1, path, cpus);
}

static int set_v2(void *context, const char *path, hwloc_const_bitmap_t cpus)
{
    return set_file(context, V2, path, cpus);
}

static int set_unit(void *context, const char *name, hwloc_const_bitmap_t cpus)
{
    CLEANUP_FREE char *list = format_list(cpus, PARSE_CPU_MAX);
    size_t len;
    Tree *t = context;

    assert_non_null(list);
    len = strlen(t->asked);
    (void)snprintf(t->asked + len, sizeof(t->asked) - len, "%s=%s;", name, list);
    t->result = -EINPROGRESS;
    return 0;
}

static int result_unit(void *context, const char *name)
{
    return ((Tree *)context)->result;
}

static const FenceOps ops_v1 = {.set = set_v1}, ops_v2 = {.set = set_v2},
                      ops_unit = {.set = set_unit, .result = result_unit};

static void start(Tree *t)
{
    char *error = NULL;

    assert_int_equal(journal_open(t->journal_path, t->root_fd, &t->journal, &error), 0);
    assert_null(error);
    t->fences = fences_new(t->journal, t->root_fd);
    assert_non_null(t->fences);
    fences_set_ops(t->fences, ACT_FENCE_CGROUP1, &ops_v1, t);
    fences_set_ops(t->fences, ACT_FENCE_CGROUP2, &ops_v2, t);
    fences_set_ops(t->fences, ACT_FENCE_UNIT, &ops_unit, t);
}

static void crash(Tree *t)
{
    t->fences = fences_free(t->fences);
    t->journal = journal_free(t->journal);
}

static CpuMask mask(const Tree *t, const char *list)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    CpuMask interned;

    assert_int_equal(parse_list(list, PARSE_CPU_MAX, set), 0);
    interned = intern_mask(t->world->pool, set);
    assert_non_null(interned);
    hwloc_bitmap_free(set);
    return interned;
}

/* A process with one thread, at home on CPUs 0-3 of eight. */
static void add_process(Tree *t, pid_t pid, const char *cgroup, const char *unit)
{
    Process process = {
        .pid = pid,
        .start_ticks = 1,
        .comm = intern_string(t->world->pool, "w"),
        .cgroup = intern_string(t->world->pool, cgroup),
        .unit = intern_string(t->world->pool, unit),
        .cpuset = mask(t, "0-7"),
        .workload = {0},
        .group = {0},
    };
    int at = world_add_process(t->world, &process);

    assert_true(at >= 0);
    assert_true(world_add_task(t->world, &(Task){
                                             .tid = pid,
                                             .process = {at},
                                             .start_ticks = 1,
                                             .hands = TASK_HANDS_FREE,
                                             .allowed = mask(t, "0-3"),
                                             .original = mask(t, "0-7"),
                                             .lease = -1,
                                         }) >= 0);
}

static int setup(void **state)
{
    TopologyOptions options = {.synthetic = "numa:2 pu:4"};
    Tree *t = calloc(1, sizeof(*t));
    char *error = NULL;

    if (!t)
        return -1;
    (void)snprintf(t->directory, sizeof(t->directory), "/tmp/numaplace-fence-XXXXXX");
    if (!mkdtemp(t->directory))
        return -1;
    (void)snprintf(t->journal_path, sizeof(t->journal_path), "%s/journal", t->directory);
    t->root_fd = open(t->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(t->root_fd >= 0);
    write_file(t, "proc/sys/kernel/random/boot_id", "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee\n");
    write_file(t, "proc/sys/kernel/osrelease", "6.12.1-test\n");
    write_file(t, "sys/devices/system/cpu/possible", "0-7\n");

    assert_int_equal(topology_load(&options, &t->topology, &error), 0);
    assert_int_equal(world_new(t->topology, &t->world), 0);
    for (unsigned i = 0; i < t->topology->cpu_limit; i++)
        t->world->cpus[i].online = t->world->cpus[i].usable = true;
    assert_int_equal(world_add_workload(t->world, "w", 0), 0);
    assert_int_equal(world_add_group(t->world, (WorkloadIx){0}, ""), 0);
    t->world->groups[0].home = mask(t, "0-3");
    t->world->groups[0].home_nodes = mask(t, "0");
    t->wish = ACT_WISH_AUTO;
    *state = t;
    return 0;
}

static int setup_v1(void **state)
{
    Tree *t;

    assert_int_equal(setup(state), 0);
    t = *state;
    write_file(t, V1 "cpuset.cpus", "0-7\n");
    write_file(t, V1 "a/cpuset.cpus", "0-7\n");
    write_file(t, V1 "a/cgroup.procs", "100\n101\n");
    for (pid_t pid = 100; pid <= 101; pid++) {
        char path[64];

        (void)snprintf(path, sizeof(path), "proc/%d/cpuset", pid);
        write_file(t, path, "/a\n");
        add_process(t, pid, "/", NULL);
    }
    t->wish = ACT_WISH_CPUSET;
    start(t);
    return 0;
}

#define UNIT_PATH "/system.slice/x.service"

static int setup_unit(void **state)
{
    Tree *t;

    assert_int_equal(setup(state), 0);
    t = *state;
    write_file(t, "run/systemd/system/x", "");
    write_file(t, V2 "cgroup.controllers", "cpuset cpu io\n");
    write_file(t, V2 "cpuset.cpus.effective", "0-7\n");
    write_file(t, "sys/fs/cgroup" UNIT_PATH "/cgroup.procs", "100\n");
    add_process(t, 100, UNIT_PATH, "x.service");
    start(t);
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    return remove(path);
}

static int teardown(void **state)
{
    Tree *t = *state;

    crash(t);
    world_free(t->world);
    topology_unref(t->topology);
    (void)close(t->root_fd);
    (void)nftw(t->directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    free(t);
    return 0;
}

static ActWish wish_of(void *userdata, const World *world, WorkloadIx workload)
{
    return ((const Tree *)userdata)->wish;
}

static void tick(Tree *t)
{
    fences_sense(t->fences);
    assert_int_equal(fences_follow(t->fences, t->world, wish_of, t), 0);
}

static void assert_cpus(const Tree *t, ActFenceKind kind, const char *path, const char *expected)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    char *list;

    assert_int_equal(fence_read(t->root_fd, kind, path, "cpuset.cpus", set), 0);
    list = format_list(set, PARSE_CPU_MAX);
    assert_string_equal(list, expected);
    free(list);
    hwloc_bitmap_free(set);
}

static void assert_why(const Tree *t, ActWhy expected)
{
    assert_string_equal(act_why_name(fences_means(t->fences, t->world->groups[0].id).why),
                        act_why_name(expected));
}

static void assert_bound(const Tree *t, const char *path, const char *expected)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    CLEANUP_FREE char *list = NULL;

    assert_int_equal(fences_bound(t->fences, path, set), expected != NULL);
    list = format_list(set, PARSE_CPU_MAX);
    if (expected)
        assert_string_equal(list, expected);
    hwloc_bitmap_free(set);
}

static void test_up(void **state)
{
    Tree *t = *state;

    tick(t);
    assert_why(t, ACT_WHY_UP);
    assert_cpus(t, ACT_FENCE_CGROUP1, "/a", "0-3");
    /* What the rest of the program is shown is what there is without it. */
    assert_bound(t, "/a", "0-7");
    assert_bound(t, "/a/b", "0-7");
    assert_bound(t, "/ab", NULL);
    assert_true(fences_hold(t->fences, 101));
    assert_false(fences_hold(t->fences, 102));
    tick(t);
    assert_why(t, ACT_WHY_UP);
    assert_int_equal(fences_restore(t->fences), 0);
    assert_cpus(t, ACT_FENCE_CGROUP1, "/a", "0-7");
    assert_int_equal(t->journal->n_fences, 0);
}

static void test_lend(void **state)
{
    Tree *t = *state;

    tick(t);
    assert_true(fences_admit(t->fences, 100, mask(t, "0-3")));
    assert_cpus(t, ACT_FENCE_CGROUP1, "/a", "0-3");
    /* A lend: what it was is back before the mask is set. */
    assert_true(fences_admit(t->fences, 100, mask(t, "0-4")));
    assert_cpus(t, ACT_FENCE_CGROUP1, "/a", "0-7");
    assert_false(fences_hold(t->fences, 100));
    t->world->groups[0].n_leases = 1;
    tick(t);
    assert_why(t, ACT_WHY_BORROWS);
    /* Not up again at once. */
    t->world->groups[0].n_leases = 0;
    tick(t);
    assert_why(t, ACT_WHY_BORROWS);
    assert_cpus(t, ACT_FENCE_CGROUP1, "/a", "0-7");
    /* Nobody of a fence: always. */
    assert_true(fences_admit(t->fences, 999, NULL));
}

static void test_release(void **state)
{
    Tree *t = *state;

    tick(t);
    assert_true(fences_admit(t->fences, 101, NULL));
    assert_cpus(t, ACT_FENCE_CGROUP1, "/a", "0-7");
}

static void test_goes(void **state)
{
    Tree *t = *state;

    tick(t);
    assert_why(t, ACT_WHY_UP);
    t->world->workloads[0].paused = true;
    tick(t);
    assert_cpus(t, ACT_FENCE_CGROUP1, "/a", "0-7");
    assert_int_equal(t->journal->n_fences, 0);
    /* Another policy. */
    t->world->workloads[0].paused = false;
    tick(t);
    assert_why(t, ACT_WHY_UP);
    t->wish = ACT_WISH_AFFINITY;
    tick(t);
    assert_why(t, ACT_WHY_POLICY);
    assert_cpus(t, ACT_FENCE_CGROUP1, "/a", "0-7");
}

static void test_not_up(void **state)
{
    Tree *t = *state;

    /* A thread that is not to be touched; one that is not at home yet. */
    t->world->tasks[1].hands = TASK_HANDS_FOREIGN;
    tick(t);
    assert_why(t, ACT_WHY_HANDS);
    t->world->tasks[1].hands = TASK_HANDS_FREE;
    t->world->tasks[1].allowed = mask(t, "0-7");
    tick(t);
    assert_why(t, ACT_WHY_SETTLING);
    t->world->tasks[1].allowed = mask(t, "0-3");
    /* Somebody of no policy, in a cgroup below. */
    write_file(t, V1 "a/b/cgroup.procs", "102\n");
    tick(t);
    assert_why(t, ACT_WHY_SHARED);
    write_file(t, V1 "a/b/cgroup.procs", "");
    tick(t);
    assert_why(t, ACT_WHY_UP);
    /* It was narrowed by hand. */
    t->world->tasks[0].hands = TASK_HANDS_REPINNED;
    tick(t);
    assert_why(t, ACT_WHY_HANDS);
    assert_cpus(t, ACT_FENCE_CGROUP1, "/a", "0-7");
}

static void test_wide(void **state)
{
    Tree *t = *state;

    t->world->groups[0].home = mask(t, "0-7");
    tick(t);
    assert_why(t, ACT_WHY_WIDE);
    assert_int_equal(t->journal->n_fences, 0);
}

static void test_reserved(void **state)
{
    Tree *t = *state;

    t->world->cpus[0].usable = false;
    t->world->tasks[0].allowed = t->world->tasks[1].allowed = mask(t, "1-3");
    tick(t);
    assert_why(t, ACT_WHY_UP);
    assert_cpus(t, ACT_FENCE_CGROUP1, "/a", "1-3");
}

static void test_foreign(void **state)
{
    Tree *t = *state;

    tick(t);
    write_file(t, V1 "a/cpuset.cpus", "2-5\n");
    tick(t);
    assert_why(t, ACT_WHY_FOREIGN);
    assert_bound(t, "/a", NULL);
    assert_int_equal(fences_restore(t->fences), 0);
    assert_cpus(t, ACT_FENCE_CGROUP1, "/a", "2-5");
}

/* The kernel takes offline CPUs from a cpuset of version 1, from ours as well as from what it was. */
static void test_offline(void **state)
{
    Tree *t = *state;

    tick(t);
    write_file(t, "sys/devices/system/cpu/online", "0-2,4-7\n");
    write_file(t, V1 "a/cpuset.cpus", "0-2\n");
    tick(t);
    assert_why(t, ACT_WHY_UP);
    crash(t);
    start(t);
    assert_int_equal(fences_restore(t->fences), 0);
    assert_cpus(t, ACT_FENCE_CGROUP1, "/a", "0-7"); /* the test's files take everything */
}

static void test_crash(void **state)
{
    Tree *t = *state;

    tick(t);
    crash(t);
    start(t);
    assert_int_equal(t->journal->n_fences, 1);
    assert_int_equal(fences_restore(t->fences), 0);
    assert_cpus(t, ACT_FENCE_CGROUP1, "/a", "0-7");
    assert_int_equal(t->journal->n_fences, 0);

    /* What somebody else set since is his. */
    tick(t);
    assert_why(t, ACT_WHY_UP);
    crash(t);
    write_file(t, V1 "a/cpuset.cpus", "3\n");
    start(t);
    assert_int_equal(fences_restore(t->fences), 0);
    assert_cpus(t, ACT_FENCE_CGROUP1, "/a", "3");
    assert_int_equal(t->journal->n_fences, 0);
}

/* A restore that did not work leaves a cpuset of ours, which is nobody's wish. */
static void test_left_over(void **state)
{
    Tree *t = *state;

    tick(t);
    crash(t);
    start(t);
    tick(t);
    assert_why(t, ACT_WHY_UP);
    assert_bound(t, "/a", "0-7");
    assert_int_equal(fences_restore(t->fences), 0);
    assert_cpus(t, ACT_FENCE_CGROUP1, "/a", "0-7");
}

static void test_forgets(void **state)
{
    Tree *t = *state;

    crash(t);
    write_file(t, "proc/sys/kernel/osrelease", "6.1.0-40-amd64\n");
    start(t);
    t->wish = ACT_WISH_AUTO;
    tick(t);
    assert_why(t, ACT_WHY_FORGETS);
    t->wish = ACT_WISH_CPUSET;
    tick(t);
    assert_why(t, ACT_WHY_UP);
    /* Masks may be others now than those the World has. */
    assert_false(fences_admit(t->fences, 100, mask(t, "0-3")));
    fences_sense(t->fences);
    assert_true(fences_admit(t->fences, 100, mask(t, "0-3")));
    assert_false(fences_admit(t->fences, 100, mask(t, "0-4")));
    assert_cpus(t, ACT_FENCE_CGROUP1, "/a", "0-7");
    assert_false(fences_admit(t->fences, 100, mask(t, "0-4")));
    fences_sense(t->fences);
    assert_true(fences_admit(t->fences, 100, mask(t, "0-4")));
}

static void test_unit(void **state)
{
    Tree *t = *state;

    tick(t);
    assert_string_equal(t->asked, "x.service=0-3;");
    assert_why(t, ACT_WHY_CHANGING);
    assert_int_equal(t->journal->n_fences, 1);
    /* It has said yes, and not written yet. */
    t->result = 0;
    tick(t);
    assert_why(t, ACT_WHY_CHANGING);
    write_file(t, "sys/fs/cgroup" UNIT_PATH "/cpuset.cpus", "0-3\n");
    tick(t);
    assert_why(t, ACT_WHY_UP);
    assert_bound(t, UNIT_PATH, "0-7");

    /* On the way down nothing that is outside is given. */
    assert_false(fences_admit(t->fences, 100, mask(t, "0-4")));
    assert_string_equal(t->asked, "x.service=0-3;x.service=0-7;");
    assert_false(fences_admit(t->fences, 100, mask(t, "0-4")));
    assert_true(fences_admit(t->fences, 100, mask(t, "0-3")));
    t->result = 0;
    write_file(t, "sys/fs/cgroup" UNIT_PATH "/cpuset.cpus", "0-7\n");
    assert_false(fences_admit(t->fences, 100, mask(t, "0-4")));
    t->result = 0;
    assert_true(fences_admit(t->fences, 100, mask(t, "0-4")));
    assert_string_equal(t->asked, "x.service=0-3;x.service=0-7;x.service=;");
}

static void test_unit_refused(void **state)
{
    Tree *t = *state;

    tick(t);
    t->result = -EACCES;
    tick(t);
    assert_why(t, ACT_WHY_REFUSED);
    assert_int_equal(fences_means(t->fences, t->world->groups[0].id).error, EACCES);
    assert_true(fences_admit(t->fences, 100, mask(t, "0-4")));
    /* It is not asked in every tick. */
    tick(t);
    assert_string_equal(t->asked, "x.service=0-3;");
}

static void stop_unit(Tree *t, const char *before, const char *asked)
{
    write_file(t, "sys/fs/cgroup" UNIT_PATH "/cpuset.cpus", before);
    tick(t);
    t->result = 0;
    write_file(t, "sys/fs/cgroup" UNIT_PATH "/cpuset.cpus", "0-3\n");
    tick(t);
    assert_why(t, ACT_WHY_UP);

    t->world->processes[0].gone = t->world->tasks[0].gone = true;
    assert_int_equal(unlinkat(t->root_fd, "sys/fs/cgroup" UNIT_PATH "/cpuset.cpus", 0), 0);
    assert_int_equal(unlinkat(t->root_fd, "sys/fs/cgroup" UNIT_PATH "/cgroup.procs", 0), 0);
    assert_int_equal(unlinkat(t->root_fd, "sys/fs/cgroup" UNIT_PATH, AT_REMOVEDIR), 0);
    for (unsigned i = 0; i < 3; i++) {
        tick(t);
        t->result = 0;
    }
    tick(t);
    assert_string_equal(t->asked, asked);
    assert_int_equal(t->journal->n_fences, 0);
}

/* The manager keeps the property of a unit that does not run. */
static void test_unit_stopped(void **state)
{
    stop_unit(*state, "0-6\n", "x.service=0-3;x.service=0-6;");
}

static void test_unit_stopped_unbound(void **state)
{
    stop_unit(*state, "\n", "x.service=0-3;x.service=;");
}

static void test_place(void **state)
{
    static const struct {
        const char *cgroup, *unit;
        ActWish wish;
        ActWhy why;
        const char *name;
    } cases[] = {
        {"/system.slice/x.service", "x.service", ACT_WISH_UNIT, ACT_WHY_UP, "x.service"},
        {"/system.slice/x.service/workers", "x.service", ACT_WISH_AUTO, ACT_WHY_UP, "x.service"},
        {"/a.slice/a-b.slice/x.scope", "x.scope", ACT_WISH_AUTO, ACT_WHY_UP, "x.scope"},
        {"/user.slice/user-1.slice/user@1.service/app.slice/y.service", "y.service", ACT_WISH_UNIT,
         ACT_WHY_NESTED, NULL},
        {"/user.slice/user-1.slice/user@1.service/init.scope", "init.scope", ACT_WISH_AUTO, ACT_WHY_NESTED,
         NULL},
        {"/system.slice", NULL, ACT_WISH_UNIT, ACT_WHY_NO_UNIT, NULL},
        {"/mine/x.service", "x.service", ACT_WISH_UNIT, ACT_WHY_NO_UNIT, NULL},
        {"/", NULL, ACT_WISH_AUTO, ACT_WHY_NO_UNIT, NULL},
        {"/system.slice/docker-1f.scope", "docker-1f.scope", ACT_WISH_AUTO, ACT_WHY_CONTAINER, NULL},
        {"/system.slice/docker-1f.scope", "docker-1f.scope", ACT_WISH_UNIT, ACT_WHY_UP, "docker-1f.scope"},
        {"/system.slice/x.service", "x.service", ACT_WISH_CPUSET, ACT_WHY_MANAGED, NULL},
        {"/system.slice/x.service", "x.service", ACT_WISH_AFFINITY, ACT_WHY_POLICY, NULL},
    };
    const Tree *t = *state;
    ActHost host;

    fences_host(t->fences, &host);
    assert_true(host.systemd && host.cpuset2 && !host.cpuset1 && !host.forgets);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Process process = {.pid = 100, .cgroup = cases[i].cgroup, .unit = cases[i].unit};
        FencePlace place;

        assert_string_equal(act_why_name(fence_place(t->root_fd, &host, &process, cases[i].wish, &place)),
                            act_why_name(cases[i].why));
        if (cases[i].name)
            assert_string_equal(place.name, cases[i].name);
    }
    /* Where systemd does not run, cgroups are whoever's made them. */
    host.systemd = false;
    for (int wish = ACT_WISH_AUTO; wish <= ACT_WISH_CPUSET; wish += 2) {
        Process process = {.pid = 100, .cgroup = "/mine/x"};
        FencePlace place;

        assert_int_equal(fence_place(t->root_fd, &host, &process, (ActWish)wish, &place), ACT_WHY_UP);
        assert_int_equal(place.kind, ACT_FENCE_CGROUP2);
        assert_string_equal(place.path, "/mine/x");
        process.cgroup = "/";
        assert_int_equal(fence_place(t->root_fd, &host, &process, (ActWish)wish, &place), ACT_WHY_ROOT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_up, setup_v1, teardown),
        cmocka_unit_test_setup_teardown(test_lend, setup_v1, teardown),
        cmocka_unit_test_setup_teardown(test_release, setup_v1, teardown),
        cmocka_unit_test_setup_teardown(test_goes, setup_v1, teardown),
        cmocka_unit_test_setup_teardown(test_not_up, setup_v1, teardown),
        cmocka_unit_test_setup_teardown(test_wide, setup_v1, teardown),
        cmocka_unit_test_setup_teardown(test_reserved, setup_v1, teardown),
        cmocka_unit_test_setup_teardown(test_foreign, setup_v1, teardown),
        cmocka_unit_test_setup_teardown(test_offline, setup_v1, teardown),
        cmocka_unit_test_setup_teardown(test_crash, setup_v1, teardown),
        cmocka_unit_test_setup_teardown(test_left_over, setup_v1, teardown),
        cmocka_unit_test_setup_teardown(test_forgets, setup_v1, teardown),
        cmocka_unit_test_setup_teardown(test_unit, setup_unit, teardown),
        cmocka_unit_test_setup_teardown(test_unit_refused, setup_unit, teardown),
        cmocka_unit_test_setup_teardown(test_unit_stopped, setup_unit, teardown),
        cmocka_unit_test_setup_teardown(test_unit_stopped_unbound, setup_unit, teardown),
        cmocka_unit_test_setup_teardown(test_place, setup_unit, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
