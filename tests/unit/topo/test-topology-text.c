/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "topo/topology-text.h"
#include "unit-test.h"

static char *write_topology(const Topology *topology)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    topology_write(topology, out);
    assert_int_equal(fclose(out), 0);
    return text;
}

static int read_topology(const char *text, Topology **ret, char **ret_error)
{
    CLEANUP(record_reader_done) RecordReader reader = {0};
    int r;

    assert_int_equal(record_reader_init(&reader, text, strlen(text)), 0);
    assert_int_equal(record_next(&reader), 0);
    r = topology_read(&reader, ret);
    *ret_error = TAKE_PTR(reader.error);
    return r;
}

/* Both text forms of the copy are those of the original: all derived values are derived alike. */
static void round_trip(const TopologyOptions *options)
{
    CLEANUP(topology_unref_p) Topology *topology = NULL, *copy = NULL;
    CLEANUP_FREE char *error = NULL, *text = NULL, *again = NULL, *format = NULL, *format_again = NULL;

    if (topology_load(options, &topology, &error) < 0)
        fail_msg("%s", error);
    text = write_topology(topology);
    if (read_topology(text, &copy, &error) < 0)
        fail_msg("%s", error);

    again = write_topology(copy);
    assert_string_equal(again, text);
    format = topology_format(topology);
    format_again = topology_format(copy);
    assert_non_null(format);
    assert_string_equal(format_again, format);
    assert_string_equal(copy->source, topology->source);
    assert_int_equal(copy->origin, topology->origin);
    assert_int_equal(copy->n_ref, 1);
}

static void test_round_trip(void **state)
{
    const TopologyOptions options[] = {
        {.synthetic = "numa:1 l3:1 core:1 pu:1"},
        {.synthetic = "numa:2 l3:1 core:2 pu:2 distances=10,21,21,10"},
        {.synthetic = "numa:4 l3:2 core:4 pu:2"},
        {.synthetic = "pack:2 numa:8 l3:1 core:64 pu:2"},
        {.synthetic = "numa:1 l3:1 core:4 pu:2", .rehearse = 2},
    };

    for (size_t i = 0; i < ARRAY_SIZE(options); i++)
        round_trip(&options[i]);
}

/* Machines that synthetic descriptions cannot express: holes, a node without CPUs, sparse node numbers, an
 * LLC over two nodes. */
#define HEAD "topology origin=xml source=\"a \\x22box\\x22\" rehearsal=0 restricted=yes distances_known=yes\n"
#define NODES                                                              \
    "node os=0 memory_bytes=1024 bandwidth_mb=204800 distances=10,12,40\n" \
    "node os=4 memory_bytes=0 bandwidth_mb=0 distances=12,10,40\n"         \
    "node os=7 memory_bytes=4096 bandwidth_mb=28000 distances=40,40,10\n"
#define CPUS                          \
    "cpu cpu=1 node=0 llc=0 core=0\n" \
    "cpu cpu=3 node=1 llc=0 core=1\n"
#define DOMAINS                                         \
    "domain numa=no distance=10 span=1 imb_numa_nr=1\n" \
    "domain numa=yes distance=12 span=2 imb_numa_nr=1\n"

static void test_odd_machine(void **state)
{
    static const char text[] = HEAD NODES CPUS DOMAINS;
    CLEANUP(topology_unref_p) Topology *t = NULL;
    CLEANUP_FREE char *error = NULL, *again = NULL;

    if (read_topology(text, &t, &error) < 0)
        fail_msg("%s", error);
    again = write_topology(t);
    assert_string_equal(again, text);

    assert_string_equal(t->source, "a \"box\"");
    assert_true(t->restricted);
    assert_int_equal(t->cpu_limit, 4);
    assert_int_equal(t->n_cpus, 2);
    assert_int_equal(t->n_cores, 2);
    assert_int_equal(t->n_llcs, 1);
    assert_null(topology_cpu(t, (CpuIx){2}));
    assert_int_equal(hwloc_bitmap_weight(t->llcs[0].nodes), 2);
    assert_int_equal(t->nodes[2].n_cpus, 0);
    assert_int_equal(t->nodes[2].os_index, 7);
    assert_int_equal(topology_distance(t, (NodeIx){0}, (NodeIx){1}), 12);
    assert_int_equal(t->domains[1].distance, 12);
}

/* Reading stops at the first line that does not belong to the topology, and leaves the reader there. */
static void test_embedded(void **state)
{
    static const char text[] = HEAD NODES CPUS DOMAINS "cpu cpu=9\n";
    CLEANUP(record_reader_done) RecordReader reader = {0};
    CLEANUP(topology_unref_p) Topology *t = NULL;

    assert_int_equal(record_reader_init(&reader, text, strlen(text)), 0);
    assert_int_equal(record_next(&reader), 0);
    assert_int_equal(topology_read(&reader, &t), 0);
    assert_true(record_is(&reader, "cpu"));
    assert_int_equal(reader.line, 9);
}

static void test_bad(void **state)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"", "line 1: expected a line \"topology ...\""},
        {"node os=0\n", "line 1: expected a line \"topology ...\""},
        {"topology source=\"x\"\n", "line 1: expected origin="},
        {"topology origin=xml source=-\n", "line 1: expected source= a string"},
        {"topology origin=moon source=\"x\"\n", "line 1: expected origin= a name such as live, not \"moon\""},
        {HEAD, "line 1: expected a consistent topology before this line"},
        {HEAD "node os=0\n", "line 2: expected distances="},
        {HEAD NODES "node os=7 distances=1\n", "line 5: expected nodes in ascending order of os="},
        {HEAD NODES "node os=8 distances=1\n" CPUS DOMAINS,
         "line 9: expected distances= of 4 numbers for each of 4 nodes, not 3"},
        {HEAD "cpu cpu=0 node=0 llc=0 core=0\n", "line 2: expected node= one of the 0 nodes listed above"},
        {HEAD NODES "cpu cpu=0 node=0 llc=0\n", "line 5: expected core="},
        {HEAD NODES "cpu cpu=-1 node=0 llc=0 core=0\n",
         "line 5: expected CPUs in ascending order, up to 65535"},
        {HEAD NODES "cpu cpu=65536 node=0 llc=0 core=0\n",
         "line 5: expected CPUs in ascending order, up to 65535"},
        {HEAD NODES CPUS "cpu cpu=3 node=0 llc=0 core=0\n",
         "line 7: expected CPUs in ascending order, up to 65535"},
        {HEAD NODES "cpu cpu=0 node=-1 llc=0 core=0\n",
         "line 5: expected node= one of the 3 nodes listed above"},
        {HEAD NODES "cpu cpu=0 node=0 llc=1 core=0\n", "line 5: expected llc= up to 0 and core= up to 0"},
        {HEAD NODES CPUS "cpu cpu=4 node=0 llc=1 core=3\n",
         "line 7: expected llc= up to 1 and core= up to 2"},
        {HEAD NODES CPUS "domain numa=no distance=10 span=3 imb_numa_nr=1\n",
         "line 7: expected a consistent topology before this line"},
        {HEAD NODES CPUS DOMAINS "domain numa=1\n", "line 9: expected numa=yes or numa=no, not \"1\""},
        {HEAD "node os=0 distances=11\ncpu cpu=0 node=0 llc=0 core=0\n"
              "domain numa=no distance=10 span=1 imb_numa_nr=1\n",
         "line 4: expected a consistent topology before this line"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *error = NULL;
        Topology *topology = NULL;

        assert_int_equal(read_topology(cases[i].text, &topology, &error), -EINVAL);
        assert_null(topology);
        assert_string_equal(error, cases[i].error);
    }
}

TEST_MAIN(NULL, NULL, test_round_trip, test_odd_machine, test_embedded, test_bad)
