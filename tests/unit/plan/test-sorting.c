/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Memory of one process, sorted by who uses it: from rounds to plans. */

#include "fixture.h"
#include "plan/ablation.h"
#include "plan/memory/follow.h"
#include "plan/memory/sorting.h"

#define MIB      ((uint64_t)1 << 20)
#define SEC      ((uint64_t)1000000)
#define BLOCK    (2 * MIB)
#define HEAP     (1 << 30)
#define N_BLOCKS 16U
#define PID      10
#define ON_0     11 /* threads, by where they live */
#define ON_1     12

typedef struct Bench {
    Fixture f;
    Sorting sorting;
    Touches touches;
    MemoryRegions regions;
    Policy *policy;
    NodeIx where[N_BLOCKS];
    pid_t user[N_BLOCKS]; /* 0: nobody touches it; -1: both do, in turns */
    int32_t runs_on[2];   /* nodes of both threads */
    uint32_t n_rounds;
} Bench;

static Process *process(Bench *b)
{
    return world_process(b->f.world, PID);
}

static SortingLook look(Bench *b)
{
    return (SortingLook){b->f.world, process(b), b->policy, &b->touches, &b->regions};
}

static void add_thread(Bench *b, pid_t tid)
{
    fixture_task(&b->f, PID, tid, 0);
    assert_int_equal(
        touches_add_thread(&b->touches, world_task_key(b->f.world, fixture_find(&b->f, PID, tid))), 0);
}

/* A home of both nodes; all memory on node 0. */
static void setup(Bench *b)
{
    const MemoryRegion heap = {.start = HEAP,
                               .end = HEAP + N_BLOCKS * BLOCK,
                               .readable = true,
                               .writable = true,
                               .resident_bytes = REGION_RESIDENT_UNKNOWN};

    *b = (Bench){.runs_on = {0, 1}};
    fixture_init(&b->f, TWO_SHARDS);
    fixture_memory(&b->f);
    b->policy = fixture_policy(&b->f, "a", "[Placement]\nMode=fixed\nNodes=0-1\n");
    fixture_process(&b->f, PID, "a", NULL);
    touches_init(&b->touches, 2);
    add_thread(b, ON_0);
    add_thread(b, ON_1);
    fixture_home(&b->f);
    fixture_find(&b->f, PID, ON_0)->home_node.i = 0;
    fixture_find(&b->f, PID, ON_1)->home_node.i = 1;
    assert_int_equal(hwloc_bitmap_weight(b->f.world->groups[0].home_nodes), 2);
    assert_int_equal(regions_add(&b->regions, &heap), 0);
    assert_int_equal(sorting_init(&b->sorting, 2), 0);
    for (uint32_t i = 0; i < N_BLOCKS; i++)
        b->where[i] = (NodeIx){0};
}

static void done(Bench *b)
{
    sorting_done(&b->sorting);
    touches_done(&b->touches);
    regions_done(&b->regions);
    fixture_done(&b->f);
}

static void touch(Bench *b, uint32_t block, pid_t tid)
{
    const Touch touch = {HEAP + block * BLOCK, tid, {b->runs_on[tid - ON_0]}};

    assert_int_equal(touches_add(&b->touches, &touch), 0);
}

static void round_(Bench *b)
{
    for (uint32_t i = 0; i < N_BLOCKS; i++) {
        if (b->user[i] > 0)
            touch(b, i, b->user[i]);
        else if (b->user[i] < 0)
            touch(b, i, (b->n_rounds + i) % 2 ? ON_0 : ON_1);
    }
    b->n_rounds++;
    assert_int_equal(touches_gather(&b->touches), 0);
    for (size_t i = 0; i < b->touches.n_blocks; i++)
        b->touches.blocks[i].node = b->where[(b->touches.blocks[i].address - HEAP) / BLOCK];
    assert_true(touches_fold(&b->touches));
}

static void rounds(Bench *b, unsigned n)
{
    while (n-- > 0)
        round_(b);
}

static void judge(Bench *b)
{
    const SortingLook what = look(b);

    assert_int_equal(sorting_judge(&b->sorting, &what), 0);
}

/* Plans the next order; whether it was given. Refusals are in the plan. */
static bool order(Bench *b, PlanUse *use)
{
    char *what = NULL;

    if (!sorting_next(&b->sorting, process(b), use))
        return false;
    assert_int_equal(plan_follow_use(b->f.world, b->f.policies, &b->f.limits, use, 1, &b->f.plan), 0);
    if (plan_check(b->f.world, b->f.policies, &b->f.limits, &b->f.plan, &what) < 0)
        fail_msg("%s", what);
    return b->f.plan.n_actions == 1;
}

/* The order is taken and done at once. */
static void carry_out(Bench *b, const PlanUse *use)
{
    fixture_commit(&b->f, NULL);
    assert_true(process(b)->memory.by_use);
    assert_true(follow_holds(b->f.world, b->f.policies, process(b)));
    assert_int_equal(sorting_taken(&b->sorting, b->f.world->now_usec), 0);
    for (size_t i = 0; i < use->n_ranges; i++)
        for (uint64_t at = use->ranges[i].start; at < use->ranges[i].end; at += BLOCK)
            b->where[(at - HEAP) / BLOCK].i = use->stripe ? (int32_t)(at / BLOCK % 2) : use->ranges[i].to.i;
    follow_over(b->f.world, b->f.policies,
                &(FollowResult){.subject = use->subject,
                                .group_id = b->f.world->groups[0].id,
                                .end = FOLLOW_END_DONE,
                                .time_usec = b->f.world->now_usec,
                                .moved_bytes = use->bytes});
    assert_null(process(b)->memory.to);
}

static void test_own(void **state)
{
    const PlanAction *action;
    PlanUse use;
    Bench b;

    setup(&b);
    for (uint32_t i = 0; i < 4; i++)
        b.user[i] = ON_0;
    for (uint32_t i = 4; i < 10; i++)
        b.user[i] = i == 7 ? 0 : ON_1;
    /* Who was seen once may be chance. */
    round_(&b);
    judge(&b);
    assert_false(order(&b, &use));
    round_(&b);
    judge(&b);
    assert_true(order(&b, &use));
    action = &b.f.plan.actions[0];
    assert_int_equal(action->rule, PLAN_RULE_FOLLOW_USE);
    assert_int_equal(use.bytes, 5 * BLOCK);
    assert_int_equal(use.n_ranges, 2);
    assert_int_equal(use.ranges[0].start, HEAP + 4 * BLOCK);
    assert_int_equal(use.ranges[0].end, HEAP + 7 * BLOCK);
    assert_int_equal(use.ranges[1].start, HEAP + 8 * BLOCK);
    assert_ptr_equal(action->memory.to, fixture_mask(&b.f, "1"));
    assert_ptr_equal(action->memory.from, fixture_mask(&b.f, "0"));
    assert_int_equal(action->memory.headroom_percent, 10);
    carry_out(&b, &use);
    assert_false(sorting_next(&b.sorting, process(&b), &use));
    assert_int_equal(b.f.world->groups[0].memory.moved_bytes, 5 * BLOCK);
    for (unsigned i = 0; i < SORTING_QUIET; i++) {
        round_(&b);
        judge(&b);
    }
    assert_int_equal(b.sorting.n_moves, 0);
    assert_int_equal(b.sorting.n_quiet, SORTING_QUIET);
    done(&b);
}

/* Of 16 blocks each thread sees a quarter of its own in a round. When half were seen again, by nobody else, all go
 * to their users, those seen once too; but three rounds of each are waited for while some are shared. */
static void test_apart(void **state)
{
    PlanUse use;

    for (uint32_t n_shared = 0; n_shared <= 2; n_shared += 2) {
        Bench b;

        setup(&b);
        for (uint32_t round = 0; round < 6; round++) {
            for (uint32_t i = 0; i < N_BLOCKS; i++) {
                bool other = i % 4 == 0 && i / 4 < n_shared && round >= 4;

                b.user[i] = i % 4 != round % 4 ? 0 : i < 8 && !other ? ON_0 : ON_1;
            }
            round_(&b);
            judge(&b);
            assert_true(round == 5 || !order(&b, &use));
        }
        assert_int_equal(order(&b, &use), n_shared == 0);
        if (n_shared == 0)
            assert_int_equal(use.bytes, 8 * BLOCK);
        done(&b);
    }
}

/* I7: what moved stays for MinResidencySec=, and does not go back for PingPongSec=. */
static void test_rest(void **state)
{
    PlanUse use;
    Bench b;

    setup(&b);
    b.policy->min_residency_usec = SEC;
    b.policy->ping_pong_usec = 10 * SEC;
    b.user[0] = ON_1;
    /* Of few blocks to be seen twice may be chance. */
    rounds(&b, 2);
    judge(&b);
    assert_false(order(&b, &use));
    round_(&b);
    judge(&b);
    assert_true(order(&b, &use));
    carry_out(&b, &use);
    /* Its user goes back to node 0. */
    fixture_find(&b.f, PID, ON_1)->home_node.i = 0;
    round_(&b);
    b.f.world->now_usec += 2 * SEC;
    judge(&b);
    assert_int_equal(b.sorting.n_moves, 0);
    assert_int_equal(b.sorting.n_resting, 1);
    b.f.world->now_usec += 9 * SEC;
    judge(&b);
    assert_true(order(&b, &use));
    assert_ptr_equal(b.f.plan.actions[0].memory.to, fixture_mask(&b.f, "0"));
    done(&b);
}

/* What is refused is not tried, and goes as soon as it may. */
static void test_refused(void **state)
{
    PlanUse use;
    Bench b;

    setup(&b);
    b.user[0] = ON_1;
    rounds(&b, 3);
    b.f.world->nodes[1].free_bytes = 1;
    for (unsigned i = 0; i < BLOCKS_TRIES + 2; i++) {
        round_(&b);
        judge(&b);
        assert_false(order(&b, &use));
        assert_int_equal(b.f.plan.n_refused[PLAN_REASON_HEADROOM], 1);
        sorting_refused(&b.sorting);
    }
    b.f.world->nodes[1].free_bytes = 4096 * MIB;
    b.policy->follow = false;
    judge(&b);
    assert_false(order(&b, &use));
    assert_int_equal(b.f.plan.n_refused[PLAN_REASON_FOLLOW_OFF], 1);
    sorting_refused(&b.sorting);
    b.policy->follow = true;
    b.f.world->kernel_balances = true; /* which is no reason */
    judge(&b);
    assert_true(order(&b, &use));
    done(&b);
}

/* All destinations at the same time, each block to its own. */
static void test_both_ways(void **state)
{
    PlanUse use;
    Bench b;

    setup(&b);
    for (uint32_t i = 0; i < 6; i++) {
        b.user[i] = i < 2 ? ON_0 : ON_1;
        b.where[i].i = i < 2 ? 1 : 0;
    }
    rounds(&b, 4);
    judge(&b);
    assert_true(order(&b, &use));
    assert_int_equal(use.bytes, 6 * BLOCK);
    assert_ptr_equal(b.f.plan.actions[0].memory.to, fixture_mask(&b.f, "0-1"));
    assert_int_equal(use.n_ranges, 2);
    assert_int_equal(use.ranges[0].end, use.ranges[1].start);
    carry_out(&b, &use);
    for (uint32_t i = 0; i < 6; i++)
        assert_int_equal(b.where[i].i, i < 2 ? 0 : 1);
    assert_false(order(&b, &use));
    rounds(&b, 4);
    judge(&b);
    assert_false(order(&b, &use));
    done(&b);
}

/* A thread that somebody else sent to a node lives there; one that may be anywhere has no right node. */
static void test_foreign(void **state)
{
    PlanUse use;
    Task *task;
    Bench b;

    setup(&b);
    b.user[0] = ON_1;
    task = fixture_find(&b.f, PID, ON_1);
    task->home_node = NODE_NONE;
    rounds(&b, 3);
    judge(&b);
    assert_int_equal(b.sorting.n_moves, 0);
    task->hands = TASK_HANDS_FOREIGN;
    task->original = NULL;
    task->allowed = fixture_mask(&b.f, "8-9");
    judge(&b);
    assert_true(order(&b, &use));
    assert_ptr_equal(b.f.plan.actions[0].memory.to, fixture_mask(&b.f, "1"));
    done(&b);
}

/* P17: what both nodes use is striped over them when it is most of the process, else it stays. */
static void test_striped(void **state)
{
    PlanUse use;
    Bench b;

    setup(&b);
    for (uint32_t i = 0; i < 8; i++)
        b.user[i] = i < 2 ? -1 : ON_0;
    rounds(&b, 6);
    judge(&b);
    assert_int_equal(b.sorting.n_moves, 0);
    for (uint32_t i = 2; i < 8; i++)
        b.user[i] = -1;
    rounds(&b, 12);
    judge(&b);
    assert_true(order(&b, &use));
    assert_true(use.stripe);
    assert_true(b.f.plan.actions[0].memory.stripe);
    assert_int_equal(b.f.plan.actions[0].mechanism, 17);
    assert_int_equal(use.bytes, 4 * BLOCK);
    carry_out(&b, &use);
    round_(&b);
    b.f.world->now_usec += 3600 * SEC;
    judge(&b);
    assert_int_equal(b.sorting.n_moves, 0);
    done(&b);
}

static void set_free(Bench *b)
{
    fixture_find(&b->f, PID, ON_0)->home_node = fixture_find(&b->f, PID, ON_1)->home_node = NODE_NONE;
}

/* Threads that are free share eight blocks. */
static void setup_shared(Bench *b)
{
    setup(b);
    set_free(b);
    for (uint32_t i = 0; i < 8; i++)
        b->user[i] = -1;
}

/* Threads that share everything have no node of their own, and use it from any of their home. */
static void test_striped_for_free_threads(void **state)
{
    PlanUse use;
    Bench b;

    setup(&b);
    set_free(&b);
    for (uint32_t i = 0; i < 8; i++)
        b.user[i] = ON_0; /* its own, wherever it is */
    rounds(&b, 12);
    judge(&b);
    assert_int_equal(b.sorting.n_moves, 0);
    for (uint32_t i = 0; i < 8; i++)
        b.user[i] = -1;
    rounds(&b, 12);
    judge(&b);
    assert_true(order(&b, &use));
    assert_true(use.stripe);
    assert_int_equal(use.bytes, 4 * BLOCK);
    done(&b);
}

/* A round a second, of which is told what it says. */
static void told_rounds(Bench *b, unsigned n)
{
    while (n-- > 0) {
        b->f.world->now_usec += SEC;
        round_(b);
        assert_int_equal(touches_tell(&b->touches, b->f.world, b->f.world->now_usec), 0);
    }
}

static size_t n_judged(Bench *b)
{
    judge(b);
    return b->sorting.n_moves;
}

/* P13: what a free thread uses alone goes where it has run for a while, and not before; what both use stays. */
static void test_own_of_free_threads(void **state)
{
    PlanUse use;
    Bench b;

    setup(&b);
    set_free(&b);
    for (uint32_t i = 0; i < 8; i++)
        b.user[i] = i < 4 ? ON_1 : i < 7 ? ON_0 : -1;
    told_rounds(&b, 5);
    assert_int_equal(n_judged(&b), 0);
    b.runs_on[1] = 0; /* one is elsewhere for a moment */
    told_rounds(&b, 1);
    b.runs_on[1] = 1;
    told_rounds(&b, 5);
    assert_int_equal(n_judged(&b), 0);
    told_rounds(&b, 1);
    b.f.world->ablated = 1ULL << ABLATION_STAYS;
    assert_int_equal(n_judged(&b), 0);
    b.f.world->ablated = 0;
    judge(&b);
    assert_true(order(&b, &use));
    assert_int_equal(use.bytes, 4 * BLOCK);
    assert_int_equal(use.ranges[0].start, HEAP);
    assert_int_equal(use.ranges[0].to.i, 1);
    done(&b);

    /* Few looks are not enough, however long they take. */
    setup(&b);
    set_free(&b);
    for (uint32_t i = 0; i < 8; i++)
        b.user[i] = ON_1;
    told_rounds(&b, 2);
    b.f.world->now_usec += 60 * SEC;
    told_rounds(&b, 1);
    assert_int_equal(n_judged(&b), 0);
    told_rounds(&b, 1);
    assert_int_not_equal(n_judged(&b), 0);
    done(&b);

    /* Who is seen anew has not been there before. */
    setup(&b);
    set_free(&b);
    for (uint32_t i = 0; i < 8; i++)
        b.user[i] = ON_1;
    told_rounds(&b, 20);
    assert_int_equal(touches_forget_thread(&b.touches, ON_1), 0);
    told_rounds(&b, 5);
    assert_int_equal(fixture_find(&b.f, PID, ON_1)->use->node.i, 1);
    assert_int_equal(n_judged(&b), 0);
    told_rounds(&b, 4);
    assert_int_not_equal(n_judged(&b), 0);
    done(&b);
}

/* P17: what free threads share is not dealt out while all of them run on one node, nor because one was elsewhere for a
 * moment. */
static void test_not_striped_on_one(void **state)
{
    PlanUse use;
    Bench b;

    setup_shared(&b);
    b.runs_on[1] = 0;
    told_rounds(&b, 12);
    assert_int_equal(n_judged(&b), 0);
    for (unsigned i = 0; i < 4; i++) {
        b.runs_on[1] = i < 3;
        told_rounds(&b, 1);
        assert_int_equal(n_judged(&b), 0);
    }
    b.runs_on[1] = 1;
    for (unsigned i = 0; i < 3; i++) {
        told_rounds(&b, 1);
        assert_int_equal(n_judged(&b), 0);
    }
    told_rounds(&b, 1);
    judge(&b);
    assert_true(order(&b, &use));
    assert_true(use.stripe);
    carry_out(&b, &use);
    for (uint32_t i = 0; i < 8; i++)
        b.where[i].i = 0; /* as if it had not gone */
    b.f.world->now_usec += 3600 * SEC;
    b.runs_on[1] = 0;
    told_rounds(&b, 1);
    assert_int_equal(n_judged(&b), 0);
    b.f.world->ablated = 1ULL << ABLATION_STAYS;
    assert_int_not_equal(n_judged(&b), 0);
    done(&b);
}

/* P14: buddies get a node together. Before they have it what they share is not dealt out; but where threads get no node
 * of their own, and where they have got none for long. */
static void test_not_striped_for_buddies(void **state)
{
    enum {
        BUDDIES,
        SWITCHED_OFF,
        FIXED,
        FOR_LONG,
        CASES
    };

    for (unsigned i = 0; i < CASES; i++) {
        const uint64_t pages[2] = {1024, 0};
        PlanUse use;
        Bench b;

        setup_shared(&b);
        b.policy->mode = i == FIXED ? POLICY_MODE_FIXED : POLICY_MODE_AUTO;
        b.f.world->ablated = i == SWITCHED_OFF ? 1ULL << ABLATION_BUDDIES : 0;
        assert_int_equal(world_set_task_use(b.f.world, fixture_find(&b.f, PID, ON_1), pages, 100,
                                            world_task_key(b.f.world, fixture_find(&b.f, PID, ON_0)), 1),
                         0);
        rounds(&b, i == FOR_LONG ? 40 : 12);
        judge(&b);
        assert_int_equal(order(&b, &use), i != BUDDIES);
        done(&b);
    }
}

/* Two pairs share eight blocks each, those of each on another node. Dealt out over both they would be no nearer. If all
 * lie on one node, or are shared by more, they are. */
static void test_not_striped_for_few(void **state)
{
    for (unsigned c = 0; c < 3; c++) {
        bool one_node = c == 1, third = c == 2;
        PlanUse use;
        Bench b;

        setup_shared(&b);
        add_thread(&b, ON_1 + 1);
        add_thread(&b, ON_1 + 2);
        for (uint32_t i = 8; i < 16; i++)
            b.where[i].i = one_node ? 0 : 1;
        for (unsigned r = 0; r < 12; r++) {
            for (uint32_t i = 8; i < 16; i++)
                touch(&b, i, (r + i) % 2 ? ON_1 + 1 : third ? ON_0 : ON_1 + 2);
            round_(&b);
        }
        judge(&b);
        assert_int_equal(order(&b, &use), one_node || third);
        done(&b);
    }
}

/* Threads that share all may seem to be buddies for a round. That does not end what was begun. */
static void test_striped_past_a_round(void **state)
{
    PlanUse use;
    Bench b;

    setup_shared(&b);
    b.user[7] = ON_0;
    rounds(&b, 12);
    judge(&b);
    assert_true(order(&b, &use));
    assert_int_equal(use.bytes, 3 * BLOCK); /* 1, 3, 5 */
    carry_out(&b, &use);

    b.user[7] = -1;
    rounds(&b, 4);
    b.f.world->now_usec += 3600 * SEC;
    b.policy->mode = POLICY_MODE_AUTO;
    judge(&b);
    assert_int_equal(b.sorting.n_moves, 0);
    b.policy->mode = POLICY_MODE_FIXED;
    judge(&b);
    assert_true(order(&b, &use));
    assert_true(use.stripe);
    assert_int_equal(use.bytes, BLOCK);
    done(&b);
}

/* When most of ten blocks are shared, those stay at which only one was seen, how often ever: it may be what that thread
 * has alone. What is found later goes as well, though it is less than a quarter. */
static void test_striped_with_the_others(void **state)
{
    PlanUse use;
    Bench b;

    setup(&b);
    set_free(&b);
    b.user[9] = ON_0;
    rounds(&b, 10);
    for (uint32_t i = 0; i < 8; i++)
        b.user[i] = i < 6 ? -1 : ON_1;
    rounds(&b, 4);
    judge(&b);
    assert_true(order(&b, &use));
    assert_true(use.stripe);
    assert_int_equal(use.bytes, 3 * BLOCK); /* 1, 3, 5 */
    carry_out(&b, &use);

    b.user[7] = -1;
    rounds(&b, 4);
    b.f.world->now_usec += 3600 * SEC;
    judge(&b);
    assert_true(order(&b, &use));
    assert_true(use.stripe);
    assert_int_equal(use.bytes, BLOCK);
    done(&b);
}

/* What all use is known first. It is not most as long as there is more of which little is known. */
static void test_not_striped_too_soon(void **state)
{
    PlanUse use;
    Bench b;

    setup_shared(&b);
    rounds(&b, 12);
    for (uint32_t i = 8; i < 16; i++)
        b.user[i] = i % 2 ? ON_0 : ON_1;
    rounds(&b, 2);
    judge(&b);
    assert_int_equal(b.sorting.n_moves, 0);
    b.user[8] = -1;
    rounds(&b, 8);
    judge(&b);
    assert_true(order(&b, &use));
    assert_true(use.stripe);
    done(&b);
}

/* A block that is to be striped and does not go is let be after three times. */
static void test_striped_in_vain(void **state)
{
    unsigned n_orders = 0;
    PlanUse use;
    Bench b;

    setup_shared(&b);
    rounds(&b, 8);
    for (unsigned i = 0; i < 6; i++) {
        round_(&b);
        judge(&b);
        if (order(&b, &use)) {
            assert_int_equal(use.bytes, 4 * BLOCK);
            carry_out(&b, &use);
            for (uint32_t k = 0; k < 8; k++)
                b.where[k].i = 0;
            n_orders++;
        }
        b.f.world->now_usec += b.policy->min_residency_usec + SEC;
    }
    assert_int_equal(n_orders, 3);
    done(&b);
}

/* Who has no home yet is looked at to find one: till then nothing moves. */
static void test_before_home(void **state)
{
    for (unsigned i = 0; i < 2; i++) {
        Group *group;
        PlanUse use;
        Bench b;

        setup(&b);
        group = &b.f.world->groups[0];
        group->home = group->home_nodes = NULL;
        group->roams = i > 0;
        for (uint32_t k = 0; k < N_BLOCKS; k++)
            b.user[k] = ON_1;
        rounds(&b, 5);
        judge(&b);
        assert_int_equal(order(&b, &use), group->roams);
        done(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own),
        cmocka_unit_test(test_apart),
        cmocka_unit_test(test_rest),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_both_ways),
        cmocka_unit_test(test_foreign),
        cmocka_unit_test(test_striped),
        cmocka_unit_test(test_striped_for_free_threads),
        cmocka_unit_test(test_own_of_free_threads),
        cmocka_unit_test(test_not_striped_on_one),
        cmocka_unit_test(test_not_striped_for_buddies),
        cmocka_unit_test(test_not_striped_for_few),
        cmocka_unit_test(test_striped_past_a_round),
        cmocka_unit_test(test_striped_with_the_others),
        cmocka_unit_test(test_not_striped_too_soon),
        cmocka_unit_test(test_striped_in_vain),
        cmocka_unit_test(test_before_home),
    };

    return cmocka_run_group_tests_name("plan/sorting", tests, NULL, NULL);
}
