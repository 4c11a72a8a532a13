/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The named machines match the texts, the fixtures and the lab. */

#include "base/root.h"
#include "sim/scenario/preset.h"
#include "topo/topology.h"
#include "unit-test.h"

#define DOMAINS_MAX 3U

/* `imb`: the allowed imbalance of each domain above the LLC, the node's first (P5). `near`, `far`: distances
 * from node 0 to node 1 and to the farthest node. `golden`: the machine of tests/fixtures/topo that it must
 * equal; `lab`: that of tests/vm/machines. */
typedef struct Expected {
    const char *name;
    uint32_t n_nodes, n_cpus, n_cores, n_llcs;
    uint32_t near, far;
    uint32_t n_domains, imb[DOMAINS_MAX];
    const char *golden, *lab;
} Expected;

static const Expected expected[] = {
    {"x5-8", 8, 288, 144, 8, 21, 31, 3, {4, 4, 8}, "8x36", NULL},
    {"xeon-1x56", 1, 56, 28, 1, 0, 0, 1, {7}, NULL, NULL},
    {"xeon-1x20", 1, 20, 10, 1, 0, 0, 1, {2}, NULL, NULL},
    {"xeon-2x20", 2, 40, 20, 2, 21, 21, 2, {2, 2}, NULL, NULL},
    {"xeon-2x44", 2, 88, 44, 2, 21, 21, 2, {5, 5}, NULL, NULL},
    {"xeon-2x40", 2, 80, 40, 2, 21, 21, 2, {5, 5}, "2x40", NULL},
    {"cascade-lake", 2, 96, 48, 2, 21, 21, 2, {6, 6}, NULL, NULL},
    {"zen3-nps1", 2, 256, 128, 16, 32, 32, 2, {8, 8}, "zen3-nps1", NULL},
    {"zen3-nps2", 4, 256, 128, 16, 12, 32, 3, {4, 4, 8}, "zen3-nps2", NULL},
    {"zen3-nps4", 8, 256, 128, 16, 12, 32, 3, {2, 2, 4}, "zen3-nps4", NULL},
    {"numa-core-4x8", 4, 32, 32, 4, 20, 20, 2, {1, 1}, "4x8", NULL},
    {"large-16x64", 16, 1024, 512, 64, 20, 30, 3, {4, 4, 16}, NULL, NULL},
    {"lab-2x2", 2, 4, 4, 2, 20, 20, 2, {1, 1}, NULL, "2x2"},
    {"lab-4x1", 4, 4, 4, 4, 20, 20, 2, {1, 1}, NULL, "4x1"},
    {"lab-4x2", 4, 8, 8, 4, 20, 20, 2, {1, 1}, NULL, "4x2"},
    {"lab-8x1", 8, 8, 8, 8, 20, 20, 2, {1, 1}, NULL, "8x1"},
    {"lab-8x1-two-level", 8, 8, 8, 8, 16, 32, 3, {1, 1, 2}, NULL, "8x1-two-level"},
};

static Topology *load(const char *name)
{
    const SimPreset *preset = preset_find(name);
    Topology *topology = NULL;
    CLEANUP_FREE char *error = NULL;

    assert_non_null(preset);
    if (preset_load(preset, &topology, &error) < 0)
        fail_msg("%s: %s", name, error);
    return topology;
}

static void check_shape(const Expected *e, const Topology *t)
{
    uint32_t far = 0;

    assert_int_equal(topology_check(t), 0);
    assert_int_equal(t->n_nodes, e->n_nodes);
    assert_int_equal(t->n_cpus, e->n_cpus);
    assert_int_equal(t->cpu_limit, e->n_cpus);
    assert_int_equal(t->n_cores, e->n_cores);
    assert_int_equal(t->n_llcs, e->n_llcs);
    for (uint32_t i = 0; i < t->n_nodes; i++)
        assert_int_equal(t->nodes[i].n_cpus, e->n_cpus / e->n_nodes);

    for (uint32_t i = 0; i < t->n_nodes; i++)
        for (uint32_t j = 0; j < t->n_nodes; j++) {
            uint32_t d = topology_distance(t, (NodeIx){(int32_t)i}, (NodeIx){(int32_t)j});

            assert_int_equal(d, t->distances[j * t->n_nodes + i]);
            assert_int_equal(d == 10, i == j);
            far = i != j ? MAX(far, d) : far;
        }
    assert_int_equal(far, e->far);
    if (t->n_nodes > 1)
        assert_int_equal(t->distances[1], e->near);

    assert_int_equal(t->n_domains, e->n_domains);
    for (uint32_t i = 0; i < t->n_domains; i++)
        assert_int_equal(t->domains[i].imb_numa_nr, e->imb[i]);
}

/* `path` is relative to tests/fixtures. */
static char *read_file(const char *path)
{
    CLEANUP_CLOSE int fd = root_open(getenv("NUMAPLACE_FIXTURES"));
    char *text = NULL;
    size_t len;

    assert_true(fd >= 0);
    if (root_read_alloc(fd, path, 1 << 20, &text, &len) < 0)
        fail_msg("%s cannot be read", path);
    return text;
}

static void check_golden(const Expected *e, const Topology *t)
{
    CLEANUP_FREE char *golden = NULL, *text = topology_format(t);
    char path[64];

    (void)snprintf(path, sizeof(path), "topo/%s.golden", e->golden);
    golden = read_file(path);
    assert_non_null(text);
    assert_string_equal(text, golden);
}

/* The text after `key` on its line of a machine file, and the lines after it. */
static char *lab_value(char *text, const char *key)
{
    char *found = strstr(text, key);

    assert_non_null(found);
    return found + strlen(key);
}

static void check_lab(const Expected *e, const Topology *t)
{
    CLEANUP_FREE char *text = NULL;
    char path[64], *row;

    (void)snprintf(path, sizeof(path), "../vm/machines/%s.machine", e->lab);
    text = read_file(path);
    assert_int_equal(strtoul(lab_value(text, "\nNodes="), NULL, 10), t->n_nodes);
    assert_int_equal(strtoul(lab_value(text, "\nCPUs="), NULL, 10), t->nodes[0].n_cpus);
    row = lab_value(text, "\nDistances=");
    for (size_t i = 0; i < (size_t)t->n_nodes * t->n_nodes; i++)
        assert_int_equal(strtoul(row, &row, 10), t->distances[i]);
}

static void test_machine(void **state)
{
    const Expected *e = *state;
    CLEANUP(topology_unref_p) Topology *topology = load(e->name);

    check_shape(e, topology);
    if (e->golden)
        check_golden(e, topology);
    if (e->lab)
        check_lab(e, topology);
}

/* Every machine of the list is in the table above, in this order, with a unique name and a line of description. */
static void test_list(void **state)
{
    const SimPreset *all;
    size_t n;

    all = preset_list(&n);
    assert_int_equal(n, ARRAY_SIZE(expected));
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(all[i].name, expected[i].name);
        assert_ptr_equal(preset_find(all[i].name), &all[i]);
        assert_true(strlen(all[i].text) > 10);
        assert_null(strchr(all[i].text, '\n'));
    }
    assert_null(preset_find("x5-9"));
    assert_null(preset_find(""));
}

int main(void)
{
    struct CMUnitTest tests[ARRAY_SIZE(expected) + 1];

    for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
        tests[i] = (struct CMUnitTest){
            .name = expected[i].name, .test_func = test_machine, .initial_state = (void *)&expected[i]};
    tests[ARRAY_SIZE(expected)] = (struct CMUnitTest)cmocka_unit_test(test_list);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
