/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* parse(format(x)) == x, for policies drawn at random with fixed seeds. The policies are made as structures,
 * not as text, and compared field by field, so that neither the parser nor the printer judges itself. */

#include "../conf/conf-test.h"
#include "policy/policy.h"

#include <hwloc/bitmap.h>

#define N_SEEDS 500U

static uint64_t draw(uint64_t *state)
{
    /* splitmix64: small, and the same on every machine */
    uint64_t z = (*state += 0x9e3779b97f4a7c15ULL);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

static uint64_t draw_range(uint64_t *state, uint64_t min, uint64_t max)
{
    return min + draw(state) % (max - min + 1);
}

/* Text of characters with a meaning somewhere in the grammar. */
static char *draw_text(uint64_t *state, size_t max)
{
    static const char *const pieces[] = {"a", "b",   "*",    "?",    "[x]", "!",        "\"",
                                         "'", "\\*", "\\\\", "\\\"", "#",   ";",        "=",
                                         "/", " ",   "\t",   "%",    "\\ ", "\xc3\xa9", "]"};
    size_t n = draw_range(state, 1, max), len = 0;
    char *text = malloc(4 * n + 1);

    assert_non_null(text);
    for (size_t i = 0; i < n; i++) {
        const char *piece = pieces[draw(state) % ARRAY_SIZE(pieces)];

        memcpy(text + len, piece, strlen(piece));
        len += strlen(piece);
    }
    text[len] = '\0';
    return text;
}

static void draw_patterns(uint64_t *state, PolicyPatterns *ret)
{
    ret->n_values = draw_range(state, 0, 3);
    if (ret->n_values == 0)
        return;
    ret->values = calloc(ret->n_values, sizeof(*ret->values));
    assert_non_null(ret->values);
    for (size_t i = 0; i < ret->n_values; i++) {
        ret->values[i].negate = draw(state) % 2;
        ret->values[i].glob = draw_text(state, 6);
    }
}

static void draw_match(uint64_t *state, PolicyMatch *ret)
{
    draw_patterns(state, &ret->unit);
    draw_patterns(state, &ret->slice);
    draw_patterns(state, &ret->cgroup);
    draw_patterns(state, &ret->comm);
    draw_patterns(state, &ret->exe);
    draw_patterns(state, &ret->command_line);
    draw_patterns(state, &ret->user);
    draw_patterns(state, &ret->environment);
    ret->min_memory_bytes = draw(state) % 2 ? draw_range(state, 0, 1ULL << 40) : 0;
    ret->min_cpu_permille = (uint32_t)draw_range(state, 0, 100000);
    ret->min_threads = (uint32_t)draw_range(state, 1, 100000); /* never empty */
}

static uint32_t draw_u32(uint64_t *state, uint32_t min, uint32_t max)
{
    return (uint32_t)draw_range(state, min, max);
}

static void draw_settings(uint64_t *state, Policy *p)
{
    p->group_by = (int)draw_range(state, 0, POLICY_GROUP_BY_MAX - 1);
    p->act = (int)draw_range(state, 0, POLICY_ACT_MAX - 1);
    p->foreign_affinity = (int)draw_range(state, 0, POLICY_FOREIGN_MAX - 1);
    p->expect_width = draw_u32(state, 0, 65536);
    p->min_age_usec = draw_range(state, 0, 86400000000);
    p->mode = (int)draw_range(state, 0, POLICY_MODE_FIXED - 1);
    if (draw(state) % 2) {
        p->nodes = hwloc_bitmap_alloc();
        assert_non_null(p->nodes);
        for (unsigned i = 0; i < 5; i++)
            assert_int_equal(hwloc_bitmap_set(p->nodes, draw_u32(state, 0, POLICY_NODES_MAX - 1)), 0);
        if (draw(state) % 2)
            p->mode = POLICY_MODE_FIXED;
    }
    p->max_nodes = p->mode == POLICY_MODE_FIXED ? 0 : draw_u32(state, 0, POLICY_NODES_MAX);
    p->settle_usec = draw_range(state, 0, 86400000000);
    p->min_residency_usec = draw_range(state, 0, 86400000000);
    p->steal = draw(state) % 2;
    p->scope = (int)draw_range(state, 0, POLICY_SCOPE_MAX - 1);
    p->node_limit = draw_u32(state, 1, POLICY_NODES_MAX);
    p->max_distance = draw_u32(state, 10, 254);
    p->lease_usec = draw_range(state, 1000000, 86400000000);
    p->follow = draw(state) % 2;
    p->evidence = (int)draw_range(state, 0, POLICY_EVIDENCE_MAX - 1);
    p->rate_limit_bytes = draw_range(state, 0, 1ULL << 50);
    p->headroom_percent = draw_u32(state, 0, 90);
    p->max_pressure_permille = draw_u32(state, 0, 1000);
    p->cross_node_moves_per_sec = draw_u32(state, 1, 100000);
}

/* A description that the grammar can express: without blanks at its ends, and without a backslash as its last
 * character. */
static char *draw_description(uint64_t *state)
{
    CLEANUP_FREE char *inner = draw_text(state, 20);
    char *text = NULL;

    assert_true(asprintf(&text, "x%sx", inner) > 0);
    return text;
}

static Policy *draw_policy(uint64_t seed)
{
    Policy *p = calloc(1, sizeof(*p));

    assert_non_null(p);
    p->name = strdup("50-x");
    p->n_matches = draw_range(&seed, 0, 3);
    if (p->n_matches > 0)
        p->matches = calloc(p->n_matches, sizeof(*p->matches));
    for (size_t i = 0; i < p->n_matches; i++)
        draw_match(&seed, &p->matches[i]);
    if (draw(&seed) % 2)
        p->description = draw_description(&seed);
    draw_settings(&seed, p);
    return p;
}

static void assert_patterns_equal(const PolicyPatterns *a, const PolicyPatterns *b)
{
    assert_int_equal(a->n_values, b->n_values);
    for (size_t i = 0; i < a->n_values; i++) {
        assert_int_equal(a->values[i].negate, b->values[i].negate);
        assert_string_equal(a->values[i].glob, b->values[i].glob);
    }
}

static void assert_match_equal(const PolicyMatch *a, const PolicyMatch *b)
{
    assert_patterns_equal(&a->unit, &b->unit);
    assert_patterns_equal(&a->slice, &b->slice);
    assert_patterns_equal(&a->cgroup, &b->cgroup);
    assert_patterns_equal(&a->comm, &b->comm);
    assert_patterns_equal(&a->exe, &b->exe);
    assert_patterns_equal(&a->command_line, &b->command_line);
    assert_patterns_equal(&a->user, &b->user);
    assert_patterns_equal(&a->environment, &b->environment);
    assert_int_equal(a->min_memory_bytes, b->min_memory_bytes);
    assert_int_equal(a->min_cpu_permille, b->min_cpu_permille);
    assert_int_equal(a->min_threads, b->min_threads);
}

static void assert_policy_equal(const Policy *a, const Policy *b)
{
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->n_matches, b->n_matches);
    for (size_t i = 0; i < a->n_matches; i++)
        assert_match_equal(&a->matches[i], &b->matches[i]);
    assert_string_equal(a->description ? a->description : "", b->description ? b->description : "");
    assert_int_equal(!a->nodes, !b->nodes);
    if (a->nodes)
        assert_true(hwloc_bitmap_isequal(a->nodes, b->nodes));
    assert_int_equal(a->group_by, b->group_by);
    assert_int_equal(a->act, b->act);
    assert_int_equal(a->foreign_affinity, b->foreign_affinity);
    assert_int_equal(a->expect_width, b->expect_width);
    assert_int_equal(a->min_age_usec, b->min_age_usec);
    assert_int_equal(a->mode, b->mode);
    assert_int_equal(a->max_nodes, b->max_nodes);
    assert_int_equal(a->settle_usec, b->settle_usec);
    assert_int_equal(a->min_residency_usec, b->min_residency_usec);
    assert_int_equal(a->steal, b->steal);
    assert_int_equal(a->scope, b->scope);
    assert_int_equal(a->node_limit, b->node_limit);
    assert_int_equal(a->max_distance, b->max_distance);
    assert_int_equal(a->lease_usec, b->lease_usec);
    assert_int_equal(a->follow, b->follow);
    assert_int_equal(a->evidence, b->evidence);
    assert_int_equal(a->rate_limit_bytes, b->rate_limit_bytes);
    assert_int_equal(a->headroom_percent, b->headroom_percent);
    assert_int_equal(a->max_pressure_permille, b->max_pressure_permille);
    assert_int_equal(a->cross_node_moves_per_sec, b->cross_node_moves_per_sec);
}

static size_t count_keys(void)
{
    size_t n = 0;

    for (size_t i = policy_n_match_keys; i < policy_n_keys; i++)
        n += !policy_keys[i].fixed;
    return n;
}

static void test_round_trip(void **state)
{
    for (uint64_t seed = 1; seed <= N_SEEDS; seed++) {
        CLEANUP(policy_free_p) Policy *policy = draw_policy(seed), *again = NULL;
        CLEANUP_FREE char *text = policy_format(policy), *text_again = NULL;
        ConfReport report = {0};

        assert_non_null(text);
        if (policy_parse("50-x", text, strlen(text), "f", NULL, &again, &report) < 0) {
            CLEANUP_FREE char *why = report_text(&report);

            fail_msg("seed %u: %s\n%s", (unsigned)seed, why, text);
        }
        conf_report_done(&report);
        assert_policy_equal(policy, again);
        /* Every key of files is present, so all of them count as set. */
        assert_int_equal(again->n_settings + (policy->description ? 0 : 1) + (policy->nodes ? 0 : 1),
                         count_keys());
        text_again = policy_format(again);
        assert_string_equal(text, text_again);
    }
}

static void test_text(void **state)
{
    static const char text[] = "[Match]\nComm=a \"b c\" !'say \"x\"' \"!d\" e\\*\nMinCPU=50%\n"
                               "[Match]\nUser=root\n[Placement]\nMode=fixed\nNodes=3,1,0\n"
                               "[Memory]\nTwoStage=no\n";
    static const char expected[] =
        "[Match]\nComm=a \"b c\" !\"say \"'\"'\"x\"'\"'\"\" \"!d\" \"e\\*\"\nMinCPU=50%\n\n"
        "[Match]\nUser=root\n\n"
        "[Workload]\nDescription=\nGroupBy=auto\nAct=auto\nForeignAffinity=respect\nExpectWidth=0\n"
        "MinAgeSec=1s\n\n"
        "[Placement]\nMode=fixed\nNodes=0-1,3\nMaxNodes=0\nSettleSec=10s\nMinResidencySec=1s\n\n"
        "[Steal]\nSteal=yes\nScope=machine\nNodeLimit=2\nMaxDistance=30\nLeaseSec=30s\n\n"
        "[Memory]\nFollow=yes\nEvidence=auto\nRateLimit=0\nTwoStage=no\nHeadroomPercent=10\nMaxPressure=10%\n\n"
        "[Limits]\nCrossNodeMovesPerSec=16\n";
    CLEANUP(policy_free_p) Policy *policy = NULL;
    CLEANUP_FREE char *printed = NULL;
    ConfReport report = {0};

    assert_int_equal(policy_parse("50-x", text, strlen(text), "f", NULL, &policy, &report), 0);
    conf_report_done(&report);
    printed = policy_format(policy);
    assert_string_equal(printed, expected);
}

TEST_MAIN(NULL, NULL, test_round_trip, test_text)
