/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Transcripts: a recorded plan is computed again from its record, byte for byte, and anything else is refused. */

#include "plan/transcript.h"

#include "plan/ablation.h"
#include "random-world.h"

#define N_WORLDS 300U

typedef struct Text {
    char *text, *policies;
    size_t size;
    FILE *out;
} Text;

static void begin(Text *t)
{
    *t = (Text){0};
    t->out = open_memstream(&t->text, &t->size);
    assert_non_null(t->out);
}

static void add(Text *t, const Fixture *f)
{
    const TranscriptEntry entry = {
        .world = f->world, .policies = f->policies, .limits = &f->limits, .plan = &f->plan};

    assert_int_equal(transcript_write(t->out, &t->policies, &entry), 0);
}

static void end(Text *t)
{
    assert_int_equal(fclose(t->out), 0);
    free(t->policies);
}

static void assert_same(TranscriptReader *reader, uint64_t tick, bool by_use)
{
    CLEANUP(transcript_plan_done) TranscriptPlan plan;
    int r = transcript_next(reader, &plan);

    if (r != 1)
        fail_msg("%s", reader->error ? reader->error : "no entry");
    assert_int_equal(plan.tick, tick);
    assert_int_equal(plan.by_use, by_use);
    assert_string_equal(plan.recorded, plan.now);
}

/* Random Worlds vary settings that are constant in files. */
static void set_constants(PolicySet *policies)
{
    for (size_t i = 0; i < policies->n_policies; i++)
        for (size_t k = policy_n_match_keys; k < policy_n_keys; k++)
            if (policy_keys[k].fixed)
                assert_int_equal(conf_key_apply(&policy_keys[k], policies->policies[i],
                                                policy_keys[k].fallback, "test", 1, NULL),
                                 0);
}

/* What a plan depends on beside the tables: what counts as idle, what the daemon ran itself, and rules that are off. */
static void set_scalars(World *world, uint64_t seed)
{
    world->idle_permille = (uint32_t)(20 + seed % 5 * 60);
    world->own_permille = (uint32_t)(seed % 7 * 60);
    world->ablated = seed % 3 == 0 ? 1ULL << seed % ABLATION_MAX | 1ULL << (ABLATION_MAX - 1) : 0;
}

/* Asserts that the World and the plan are as recorded, without planning again. */
static void assert_worlds(const Text *t, uint64_t tick, unsigned n)
{
    CLEANUP(transcript_reader_done) TranscriptReader reader = transcript_reader(t->text, t->size);
    PlanLimits limits;
    World *world;
    char *plan;

    for (unsigned i = 0; i < n; i++) {
        CLEANUP_FREE char *dump = NULL;

        assert_int_equal(transcript_next_world(&reader, &world, &limits, &plan), 1);
        assert_int_equal(limits.slow_tick, i != 1);
        assert_int_equal(world->tick, tick + i);
        assert_non_null(reader.policies);
        dump = world_dump(world);
        assert_non_null(memmem(t->text, t->size, dump, strlen(dump)));
        assert_non_null(memmem(t->text, t->size, plan, strlen(plan)));
        world_free(world);
        free(plan);
    }
    assert_int_equal(transcript_next_world(&reader, &world, &limits, &plan), 0);
}

/* Some have policies that no file could contain. */
static bool are_valid(const PolicySet *policies)
{
    for (size_t i = 0; i < policies->n_policies; i++) {
        CLEANUP_FREE char *text = policy_format(policies->policies[i]);
        CLEANUP(policy_free_p) Policy *policy = NULL;
        ConfReport report = {0};
        int r = policy_parse("policy", text, strlen(text), "policy", NULL, &policy, &report);

        conf_report_done(&report);
        if (r < 0)
            return false;
    }
    return true;
}

static void test_worlds(void **state)
{
    size_t n_actions = 0, n_worlds = 0;

    for (uint64_t seed = 1; seed <= N_WORLDS; seed++) {
        TranscriptReader reader;
        TranscriptPlan none;
        CLEANUP(fixture_done) Fixture f;
        Text t;

        random_world(&f, seed, &random_no_renaming);
        set_constants(f.policies);
        set_scalars(f.world, seed);
        if (!are_valid(f.policies)) {
            fixture_done(&f);
            continue;
        }
        n_worlds++;
        begin(&t);
        for (unsigned i = 0; i < 3; i++) {
            fixture_plan(&f, i != 1);
            n_actions += f.plan.n_actions;
            add(&t, &f);
            fixture_commit(&f, NULL);
            fixture_tick(&f);
        }
        end(&t);
        reader = transcript_reader(t.text, t.size);
        for (uint64_t i = 0; i < 3; i++)
            assert_same(&reader, f.world->tick - 3 + i, false);
        assert_int_equal(transcript_next(&reader, &none), 0);
        transcript_reader_done(&reader);
        assert_worlds(&t, f.world->tick - 3, 3);
        free(t.text);
    }
    assert_in_range(n_worlds, N_WORLDS / 2, N_WORLDS);
    print_message("# %zu worlds, %zu actions\n", n_worlds, n_actions);
    assert_in_range(n_actions, N_WORLDS, SIZE_MAX);
}

/* A process on both nodes, whose memory is moved by use. */
static void by_use(Fixture *f, Text *t)
{
    const PlanRange ranges[] = {{0x200000, 0x600000, {1}}, {0x800000, 0xa00000, NODE_NONE}};
    const PlanUse use = {.subject = {.pid = 100, .start_ticks = 100},
                         .ranges = ranges,
                         .n_ranges = 2,
                         .bytes = 0x600000,
                         .from = hwloc_bitmap_alloc(),
                         .to = hwloc_bitmap_alloc()};
    const PlanLimits limits = {.slow_tick = false};

    fixture_init(f, TWO_SHARDS);
    fixture_memory(f);
    fixture_policy(f, "jvm", "[Placement]\nGroupBy=process\n[Memory]\nHeadroom=10%\n");
    fixture_process(f, 100, "jvm", NULL);
    f->world->processes[0].start_ticks = 100;
    fixture_task(f, 100, 100, 0);
    fixture_place(f);
    assert_int_equal(hwloc_bitmap_set((hwloc_bitmap_t)use.from, 0), 0);
    assert_int_equal(hwloc_bitmap_set((hwloc_bitmap_t)use.to, 1), 0);
    f->world->groups[0].home = f->world->groups[0].home_nodes = NULL;
    assert_int_equal(plan_follow_use(f->world, f->policies, &limits, &use, 1, &f->plan), 0);
    assert_int_equal(transcript_write(t->out, &t->policies,
                                      &(TranscriptEntry){.world = f->world,
                                                         .policies = f->policies,
                                                         .limits = &limits,
                                                         .by_use = true,
                                                         .uses = &use,
                                                         .n_uses = 1,
                                                         .plan = &f->plan}),
                     0);
    hwloc_bitmap_free((hwloc_bitmap_t)use.from);
    hwloc_bitmap_free((hwloc_bitmap_t)use.to);
}

static void test_by_use(void **state)
{
    TranscriptReader reader;
    CLEANUP(fixture_done) Fixture f;
    Text t;

    begin(&t);
    by_use(&f, &t);
    assert_int_equal(fixture_count(&f, PLAN_KIND_MOVE_PAGES), 1);
    end(&t);
    reader = transcript_reader(t.text, t.size);
    assert_same(&reader, f.world->tick, true);
    transcript_reader_done(&reader);
    free(t.text);
}

/* A daemon without policies plans, too. */
static void test_no_policies(void **state)
{
    TranscriptReader reader;
    PlanLimits limits;
    World *world;
    Fixture f;
    char *plan;
    Text t;

    fixture_init(&f, TWO_SHARDS);
    begin(&t);
    for (unsigned i = 0; i < 2; i++) {
        fixture_plan(&f, true);
        add(&t, &f);
    }
    end(&t);
    reader = transcript_reader(t.text, t.size);
    assert_same(&reader, f.world->tick, false);
    assert_same(&reader, f.world->tick, false);
    transcript_reader_done(&reader);
    reader = transcript_reader(t.text, t.size);
    assert_int_equal(transcript_next_world(&reader, &world, &limits, &plan), 1);
    assert_int_equal(reader.policies->n_policies, 0);
    world_free(world);
    free(plan);
    transcript_reader_done(&reader);
    free(t.text);
    fixture_done(&f);
}

/* Policies that are all gone are gone in the record, too. */
static void test_policies_gone(void **state)
{
    CLEANUP(fixture_done) Fixture f;
    TranscriptReader reader;
    size_t n;
    Text t;

    fixture_init(&f, TWO_SHARDS);
    fixture_policy(&f, "jvm", "[Placement]\nMode=auto\n");
    n = f.policies->n_policies;
    begin(&t);
    for (unsigned i = 0; i < 3; i++) {
        f.policies->n_policies = i == 1 ? 0 : n;
        assert_int_equal(group_sync_workloads(f.world, f.policies), 0);
        fixture_plan(&f, true);
        add(&t, &f);
    }
    end(&t);
    reader = transcript_reader(t.text, t.size);
    for (unsigned i = 0; i < 3; i++) {
        assert_same(&reader, f.world->tick, false);
        assert_int_equal(reader.policies->n_policies, i == 1 ? 0 : n);
    }
    transcript_reader_done(&reader);
    free(t.text);
}

/* Asserts that the text is refused after one change that keeps its length. */
static void assert_refused(Text *t, const char *before, const char *after, const char *says)
{
    TranscriptReader reader;
    TranscriptPlan plan;
    char *at = strstr(t->text, before);

    assert_non_null(at);
    assert_int_equal(strlen(before), strlen(after));
    memcpy(at, after, strlen(after));
    reader = transcript_reader(t->text, t->size);
    assert_int_equal(transcript_next(&reader, &plan), -EINVAL);
    if (!strstr(reader.error, says))
        fail_msg("%s", reader.error);
    transcript_reader_done(&reader);
    memcpy(at, before, strlen(before));
}

/* A plan that comes out differently is reported; so is a text cut at any byte. */
static void test_changed(void **state)
{
    TranscriptReader reader;
    TranscriptPlan plan;
    CLEANUP(fixture_done) Fixture f;
    Text t;
    char *at;

    begin(&t);
    by_use(&f, &t);
    end(&t);
    at = strstr(t.text, "bytes=6291456 from=");
    assert_non_null(at);
    at[6] = '4'; /* 4291456 */
    reader = transcript_reader(t.text, t.size);
    assert_int_equal(transcript_next(&reader, &plan), 1);
    assert_string_not_equal(plan.recorded, plan.now);
    transcript_plan_done(&plan);
    transcript_reader_done(&reader);

    for (size_t i = 1; i < t.size; i += 7) {
        reader = transcript_reader(t.text, i);
        assert_int_equal(transcript_next(&reader, &plan), -EINVAL);
        assert_non_null(reader.error);
        assert_int_equal(strncmp(reader.error, "entry 1, ", 9), 0);
        transcript_reader_done(&reader);
    }
    assert_refused(&t, " from=0 ", " from=9 ", "from= and to= nodes of the topology");
    assert_refused(&t, " to=1 ", " to=7 ", "from= and to= nodes of the topology");
    assert_refused(&t, " to=1\n", " to=7\n", "to a node of the topology");
    assert_refused(&t, " to=-1\n", " to=77\n", "to a node of the topology");
    assert_refused(&t, "start=2097152 ", "start=9097152 ", "begins before its end");
    assert_refused(&t, "\nuse pid=", "\nuve pid=", "use pid=");
    at = strstr(t.text, "format version=1");
    at[15] = '9';
    reader = transcript_reader(t.text, t.size);
    assert_int_equal(transcript_next(&reader, &plan), -EINVAL);
    assert_non_null(strstr(reader.error, "World"));
    transcript_reader_done(&reader);
    free(t.text);
}

/* The names of all rules fit. */
static void test_all_rules(void **state)
{
    CLEANUP(fixture_done) Fixture f;
    TranscriptReader reader;
    PlanLimits limits;
    World *world;
    char *plan;
    Text t;

    fixture_init(&f, TWO_SHARDS);
    f.world->ablated = (1ULL << ABLATION_MAX) - 1;
    begin(&t);
    fixture_plan(&f, true);
    add(&t, &f);
    end(&t);
    reader = transcript_reader(t.text, t.size);
    assert_int_equal(transcript_next_world(&reader, &world, &limits, &plan), 1);
    assert_int_equal(world->ablated, f.world->ablated);
    world_free(world);
    free(plan);
    transcript_reader_done(&reader);
    free(t.text);
}

/* A rule that this version does not have. */
static void test_unknown_rule(void **state)
{
    CLEANUP(fixture_done) Fixture f;
    Text t;

    fixture_init(&f, TWO_SHARDS);
    f.world->ablated = 1ULL << ABLATION_NEAREST;
    begin(&t);
    fixture_plan(&f, true);
    add(&t, &f);
    end(&t);
    assert_refused(&t, " off=\"nearest\" ", " off=\"dearest\" ", "names of rules in off=, not: dearest");
    free(t.text);
}

TEST_MAIN(NULL, NULL, test_worlds, test_by_use, test_no_policies, test_policies_gone, test_all_rules,
          test_unknown_rule, test_changed)
