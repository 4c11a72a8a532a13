/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Processes that share memory form one group (P12, S-GRP). */

#include "fixture.h"
#include "plan/home/sharing.h"

#define SHARING "[Placement]\nMode=fixed\nNodes=0\n[Workload]\nGroupBy=shared-memory\n"

/* Sets what a process maps; NULL: not known. */
static void shares(Fixture *f, pid_t pid, const char *words)
{
    Process *process = world_process(f->world, pid);

    process->shared = words ? intern_string(f->world->pool, words) : NULL;
    if (words)
        assert_non_null(process->shared);
}

static void add(Fixture *f, pid_t pid, const char *words)
{
    fixture_process(f, pid, "w", NULL);
    shares(f, pid, words);
}

static void group(Fixture *f)
{
    CLEANUP_FREE char *what = NULL;

    assert_int_equal(sharing_group(f->world, f->policies), 0);
    if (world_check(f->world, &what) < 0)
        fail_msg("%s", what);
}

static uint64_t group_of(Fixture *f, pid_t pid)
{
    return f->world->groups[world_process(f->world, pid)->group.i].id;
}

/* Counts groups with a member. */
static size_t count(const Fixture *f)
{
    size_t n = 0;

    for (size_t g = 0; g < f->world->n_groups; g++)
        for (size_t i = 0; i < f->world->n_processes; i++)
            if (!f->world->processes[i].gone && f->world->processes[i].group.i == (int32_t)g) {
                n++;
                break;
            }
    return n;
}

/* S-GRP: four processes share one piece of memory, four have their own: exactly one group of four. */
static void test_s_grp(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init(&f, TWO_SHARDS);
    fixture_policy(&f, "w", SHARING);
    for (pid_t pid = 1; pid <= 8; pid++)
        add(&f, pid, pid % 2 ? "0:1:77" : NULL);
    assert_int_equal(count(&f), 8); /* before the first look */
    group(&f);
    assert_int_equal(count(&f), 5);
    for (pid_t pid = 3; pid <= 7; pid += 2)
        assert_int_equal(group_of(&f, pid), group_of(&f, 1));
    for (pid_t pid = 2; pid <= 8; pid += 2)
        assert_int_not_equal(group_of(&f, pid), group_of(&f, 1));

    /* Looking again changes nothing, and empty groups are removed. */
    assert_int_equal(world_compact(f.world), 0);
    assert_int_equal(f.world->n_groups, 5);
    group(&f);
    assert_int_equal(f.world->n_groups, 5);
    assert_int_equal(count(&f), 5);
}

/* 1 shares with 2, and 2 with 3, so 1 and 3 belong together. Inode 77 of another device is other memory. */
static void test_chain(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init(&f, TWO_SHARDS);
    fixture_policy(&f, "w", SHARING);
    add(&f, 1, "0:1:7 0:1:77");
    add(&f, 2, "0:1:8 0:1:77");
    add(&f, 3, "0:1:8 0:2:9");
    add(&f, 4, "0:2:77");
    add(&f, 5, "0:1:777");
    group(&f);
    assert_int_equal(count(&f), 3);
    assert_int_equal(group_of(&f, 1), group_of(&f, 2));
    assert_int_equal(group_of(&f, 1), group_of(&f, 3));
}

/* Workloads are grouped separately, whatever they share; other policies group differently. */
static void test_within_workload(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init(&f, TWO_SHARDS);
    fixture_policy(&f, "v", SHARING);
    fixture_policy(&f, "w", SHARING);
    fixture_policy(&f, "x", "[Placement]\nMode=fixed\nNodes=0\n[Workload]\nGroupBy=process\n");
    add(&f, 1, "0:1:77");
    add(&f, 2, "0:1:77");
    fixture_process(&f, 3, "v", NULL);
    fixture_process(&f, 4, "x", NULL);
    fixture_process(&f, 5, "x", NULL);
    for (pid_t pid = 3; pid <= 5; pid++)
        shares(&f, pid, "0:1:77");
    group(&f);
    assert_int_equal(count(&f), 4);
    assert_int_equal(group_of(&f, 1), group_of(&f, 2));
}

/* A group stays the same while members come and go, and keeps its home. */
static void test_goes_on(void **state)
{
    uint64_t id;
    CLEANUP(fixture_done) Fixture f;

    fixture_init(&f, TWO_SHARDS);
    fixture_policy(&f, "w", SHARING);
    for (pid_t pid = 11; pid <= 13; pid++) {
        add(&f, pid, "0:1:77");
        fixture_task(&f, pid, pid, 0);
    }
    group(&f);
    fixture_home(&f);
    id = group_of(&f, 11);
    assert_non_null(world_group_by_id(f.world, id)->home);

    /* A member with a lower PID comes, and the first one leaves. */
    add(&f, 5, "0:1:77");
    fixture_task(&f, 5, 5, 0);
    world_process(f.world, 11)->gone = true;
    group(&f);
    assert_int_equal(world_compact(f.world), 0);
    for (size_t i = 0; i < f.world->n_processes; i++)
        assert_int_equal(f.world->groups[f.world->processes[i].group.i].id, id);
    assert_int_equal(count(&f), 1);

    /* A reused PID belongs to another process. */
    add(&f, 11, NULL);
    group(&f);
    assert_int_not_equal(group_of(&f, 11), id);
}

/* When two groups join, the older continues with the members of both. When a group splits, its larger part
 * continues. */
static void test_join_and_split(void **state)
{
    uint64_t older, newer;
    CLEANUP(fixture_done) Fixture f;

    fixture_init(&f, TWO_SHARDS);
    fixture_policy(&f, "w", SHARING);
    add(&f, 4, "0:1:7");
    add(&f, 5, "0:1:7");
    group(&f);
    older = group_of(&f, 4);
    for (pid_t pid = 1; pid <= 3; pid++)
        add(&f, pid, "0:1:8");
    group(&f);
    newer = group_of(&f, 1);
    assert_true(older < newer);

    shares(&f, 3, "0:1:7 0:1:8");
    group(&f);
    for (pid_t pid = 1; pid <= 5; pid++)
        assert_int_equal(group_of(&f, pid), older);

    shares(&f, 3, "0:1:8");
    group(&f);
    for (pid_t pid = 1; pid <= 3; pid++)
        assert_int_equal(group_of(&f, pid), older);
    assert_int_equal(group_of(&f, 4), group_of(&f, 5));
    assert_int_not_equal(group_of(&f, 4), older);

    /* Assigning a process again does not take it out of its group. */
    assert_int_equal(group_assign(f.world, f.policies, world_process(f.world, 2), 0), 0);
    assert_int_equal(group_of(&f, 2), older);
}

/* Random sharing, compared with joining pairs until nothing changes. */
static void test_random(void **state)
{
    uint64_t seed = 1;

    for (int round = 0; round < 200; round++) {
        uint64_t label[24], words[24];
        bool changed = true;
        CLEANUP(fixture_done) Fixture f;

        fixture_init(&f, TWO_SHARDS);
        fixture_policy(&f, "w", SHARING);
        for (int i = 0; i < 24; i++) {
            char text[64] = "";

            words[i] = 1ULL << fixture_random(&seed, 30) | 1ULL << fixture_random(&seed, 30);
            for (int k = 0; k < 30; k++)
                if (words[i] & 1ULL << k)
                    (void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s0:1:%d",
                                   *text ? " " : "", k);
            add(&f, i + 1, text);
            label[i] = (uint64_t)i;
        }
        while (changed) {
            changed = false;
            for (int i = 0; i < 24; i++)
                for (int k = 0; k < 24; k++)
                    if ((words[i] & words[k]) && label[k] < label[i]) {
                        label[i] = label[k];
                        changed = true;
                    }
        }
        group(&f);
        for (int i = 0; i < 24; i++)
            for (int k = 0; k < 24; k++)
                assert_int_equal(group_of(&f, i + 1) == group_of(&f, k + 1), label[i] == label[k]);
    }
}

/* Where no policy says what belongs together: processes that share much of their memory, or that the kernel
 * has grouped. */
static void test_auto(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init(&f, TWO_SHARDS);
    fixture_policy(&f, "w", "[Placement]\nMode=auto\n");
    add(&f, 100, "0:1:7+");
    add(&f, 101, "0:1:7+ 0:1:8");
    add(&f, 102, "0:1:7 0:1:8 0:1:9+");
    add(&f, 103, "0:1:8");
    add(&f, 104, "0:1:8 ngid:5");
    add(&f, 105, "ngid:5");
    add(&f, 106, NULL);
    group(&f);
    assert_int_equal(count(&f), 5);
    assert_int_equal(group_of(&f, 100), group_of(&f, 101));
    assert_int_not_equal(group_of(&f, 101), group_of(&f, 102));
    assert_int_not_equal(group_of(&f, 102), group_of(&f, 103));
    assert_int_equal(group_of(&f, 104), group_of(&f, 105));
    /* Memory of 102 moves only as far as no other process maps it. */
    assert_true(sharing_moves(f.world, f.policies->policies[0], world_process(f.world, 100)));
    assert_true(sharing_moves(f.world, f.policies->policies[0], world_process(f.world, 105)));
    assert_false(sharing_moves(f.world, f.policies->policies[0], world_process(f.world, 102)));
    assert_false(sharing_moves(f.world, f.policies->policies[0], world_process(f.world, 106)));
}

/* Under a policy with a mode of its own, or with cpusets of whole cgroups, the group is a cgroup. */
static void test_auto_named(void **state)
{
    static const char *const texts[] = {
        "[Placement]\nMode=fixed\nNodes=0\n",
        "[Placement]\nMode=spread\n",
        "[Placement]\nMode=auto\n[Workload]\nAct=unit\n",
        "[Placement]\nMode=auto\n[Workload]\nAct=cpuset\n",
    };

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        CLEANUP(fixture_done) Fixture f;

        fixture_init(&f, TWO_SHARDS);
        fixture_policy(&f, "w", texts[i]);
        add(&f, 100, NULL);
        add(&f, 101, NULL);
        group(&f);
        assert_int_equal(group_of(&f, 100), group_of(&f, 101));
        assert_false(sharing_moves(f.world, f.policies->policies[0], world_process(f.world, 100)));
    }
}

#define NAMED "[Placement]\nMode=auto\n[Workload]\nGroupBy=cgroup\n"

static Group *group_with(Fixture *f, pid_t pid)
{
    return &f->world->groups[world_process(f->world, pid)->group.i];
}

/* Makes a process an old one that wants this much. */
static void want(Fixture *f, pid_t pid, uint32_t permille)
{
    world_process(f->world, pid)->first_seen_usec = 0;
    group_with(f, pid)->first_seen_usec = 0;
    group_with(f, pid)->want_permille = group_with(f, pid)->demand_permille = permille;
}

/* A cgroup that fits on a node is one group; if it does not, processes that share memory are. On a node of
 * eight CPUs processes are put together up to six CPUs, and stay together up to 108 %. */
static void test_parts(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init(&f, TWO_SHARDS);
    fixture_policy(&f, "w", NAMED);
    add(&f, 100, "0:1:7+");
    add(&f, 101, "0:1:7+");
    add(&f, 102, NULL);
    want(&f, 100, 2000);
    want(&f, 101, 2000);
    want(&f, 102, 2001);
    group(&f);
    assert_int_equal(count(&f), 2);
    assert_int_equal(group_of(&f, 100), group_of(&f, 101));
    assert_true(sharing_moves(f.world, f.policies->policies[0], world_process(f.world, 100)));
    assert_false(sharing_moves(f.world, f.policies->policies[0], world_process(f.world, 102)));
    want(&f, 100, 4000);
    want(&f, 102, 2000);
    group(&f);
    assert_int_equal(count(&f), 1);
    assert_false(sharing_moves(f.world, f.policies->policies[0], world_process(f.world, 100)));
    want(&f, 100, 8640);
    group(&f);
    assert_int_equal(count(&f), 1);
    want(&f, 100, 8641);
    group(&f);
    assert_int_equal(count(&f), 2);
    assert_int_equal(group_of(&f, 100), group_of(&f, 101));
    /* They are not put together again at once. */
    group_with(&f, 100)->want_permille = group_with(&f, 100)->demand_permille = 100;
    group(&f);
    assert_int_equal(count(&f), 2);
    f.world->now_usec += 60000000;
    group(&f);
    assert_int_equal(count(&f), 1);
}

/* Newcomers join the others if all of them fit. If not, they stay apart, even when they are no longer new,
 * and the others stay together. A thread that was not measured yet counts as wanting a CPU. */
static void test_newcomers(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init(&f, TWO_SHARDS);
    fixture_policy(&f, "w", NAMED);
    add(&f, 100, NULL);
    add(&f, 101, NULL);
    want(&f, 100, 3000);
    want(&f, 101, 3000);
    group(&f);
    assert_int_equal(count(&f), 1);
    want(&f, 100, 5000);
    add(&f, 102, "0:1:7+");
    add(&f, 103, "0:1:7+");
    world_process(f.world, 102)->first_seen_usec = f.world->now_usec;
    world_process(f.world, 103)->first_seen_usec = f.world->now_usec;
    fixture_task(&f, 102, 102, 0)->fresh = true;
    fixture_task(&f, 103, 103, 0)->fresh = true;
    for (int i = 0; i < 40; i++) {
        group(&f);
        assert_int_equal(count(&f), 2);
        assert_int_equal(group_of(&f, 100), group_of(&f, 101));
        assert_int_equal(group_of(&f, 102), group_of(&f, 103));
        group_with(&f, 102)->want_permille = 1001;
        fixture_find(&f, 102, 102)->fresh = fixture_find(&f, 103, 103)->fresh = false;
        f.world->now_usec += 100000;
    }
    group_with(&f, 102)->want_permille = 1000;
    group(&f);
    assert_int_equal(count(&f), 1);
}

/* A process that shares memory with another cgroup does not join that group for it. */
static void test_parts_of_two(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init(&f, TWO_SHARDS);
    fixture_policy(&f, "w", NAMED);
    for (pid_t pid = 100; pid < 104; pid++) {
        add(&f, pid, "0:1:7+");
        if (pid >= 102)
            world_process(f.world, pid)->cgroup = intern_string(f.world->pool, "/other.slice");
        want(&f, pid, 100);
    }
    group(&f);
    assert_int_equal(count(&f), 2);
    assert_int_equal(group_of(&f, 100), group_of(&f, 101));
    assert_int_equal(group_of(&f, 102), group_of(&f, 103));
    for (pid_t pid = 100; pid < 104; pid++)
        want(&f, pid, 9000);
    group(&f);
    assert_int_equal(count(&f), 2);
}

/* Not if the policy says how wide the groups are, nor on a machine with one node. */
static void test_parts_not(void **state)
{
    static const char *const texts[] = {
        NAMED "ExpectWidth=4\n", "[Placement]\nMode=auto\nMaxNodes=1\n[Workload]\nGroupBy=cgroup\n", NAMED};

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        CLEANUP(fixture_done) Fixture f;

        fixture_init(&f, i < 2 ? TWO_SHARDS : "numa:1 core:8 pu:1");
        fixture_policy(&f, "w", texts[i]);
        add(&f, 100, NULL);
        add(&f, 101, NULL);
        want(&f, 100, 9000);
        want(&f, 101, 9000);
        group(&f);
        assert_int_equal(count(&f), 1);
    }
}

TEST_MAIN(NULL, NULL, test_s_grp, test_chain, test_within_workload, test_goes_on, test_join_and_split,
          test_random, test_auto, test_auto_named, test_parts, test_newcomers, test_parts_of_two,
          test_parts_not)
