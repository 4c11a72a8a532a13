/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Every machine in tests/fixtures/topo reads as its golden file says; see the README there. */

#include "../temp-tree.h"
#include "topo/topology.h"

#include <fcntl.h>

typedef struct Machine {
    const char *name;
    const char *kind; /* file name extension */
    uint32_t rehearse;
} Machine;

static const Machine machines[] = {
    {"2x40", "synthetic"},
    {"2x64", "synthetic"},
    {"4x8", "synthetic"},
    {"8x36", "synthetic"},
    {"16-nodes", "synthetic"},
    {"2048-cpus", "synthetic"},
    {"zen3-nps1", "synthetic"},
    {"zen3-nps2", "synthetic"},
    {"zen3-nps4", "synthetic"},
    {"snc2", "synthetic"},
    {"fake-numa", "synthetic"},
    {"laptop", "synthetic"},
    {"no-l3", "synthetic"},
    {"missing-distances", "synthetic"},
    {"four-cpus", "synthetic"},
    {"four-cpus", "synthetic", 2},
    {"laptop", "synthetic", 3},
    {"two-llcs", "synthetic", 2},
    {"cxl", "xml"},
    {"bandwidth", "xml"},
    {"cxl-machine", "xml"},
    {"memoryless", "xml"},
    {"sparse-ids", "xml"},
    {"cpu-holes", "xml"},
    {"bad-distances", "xml"},
    {"partial-distances", "xml"},
    {"no-cache", "xml"},
};

static Topology *load(const Machine *machine)
{
    TopologyOptions options = {.rehearse = machine->rehearse};
    CLEANUP_CLOSE int fd = test_fixture("topo", ".");
    CLEANUP_FREE char *text = NULL;
    Topology *topology = NULL;
    char file[64], path[4096], *error = NULL;
    size_t len;

    (void)snprintf(file, sizeof(file), "%s.%s", machine->name, machine->kind);
    if (strcmp(machine->kind, "xml") == 0) {
        (void)snprintf(path, sizeof(path), "%s/topo/%s", getenv("NUMAPLACE_FIXTURES"), file);
        options.xml = path;
    } else {
        assert_int_equal(root_read_alloc(fd, file, 1 << 20, &text, &len), 0);
        options.synthetic = text;
    }
    if (topology_load(&options, &topology, &error) < 0)
        fail_msg("%s: %s", file, error);
    return topology;
}

static void write_golden(int dir_fd, const char *file, const char *text)
{
    CLEANUP_CLOSE int fd = openat(dir_fd, file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void test_golden(void **state)
{
    const Machine *machine = *state;
    CLEANUP(topology_unref_p) Topology *topology = load(machine);
    CLEANUP_FREE char *text = topology_format(topology), *golden = NULL;
    CLEANUP_CLOSE int fd = test_fixture("topo", ".");
    char file[96];
    size_t len;

    assert_int_equal(topology_check(topology), 0);
    assert_non_null(text);
    if (machine->rehearse)
        (void)snprintf(file, sizeof(file), "%s-rehearse-%u.golden", machine->name, machine->rehearse);
    else
        (void)snprintf(file, sizeof(file), "%s.golden", machine->name);
    if (getenv("NUMAPLACE_UPDATE_GOLDEN"))
        write_golden(fd, file, text);
    assert_int_equal(root_read_alloc(fd, file, 1 << 20, &golden, &len), 0);
    assert_string_equal(text, golden);
}

int main(void)
{
    struct CMUnitTest tests[ARRAY_SIZE(machines)];
    char names[ARRAY_SIZE(machines)][64];

    for (size_t i = 0; i < ARRAY_SIZE(machines); i++) {
        (void)snprintf(names[i], sizeof(names[i]), "%s %s %u", machines[i].name, machines[i].kind,
                       machines[i].rehearse);
        tests[i] = (struct CMUnitTest){
            .name = names[i],
            .test_func = test_golden,
            .initial_state = (void *)&machines[i],
        };
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
