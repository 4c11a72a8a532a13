/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Sources that are not valid machines: the right -errno, one sentence, and nothing else changed. */

#include "../machine.h"
#include "../temp-tree.h"
#include "topo/topology.h"

#include <fcntl.h>

/* Loading fails with `r` and a sentence that contains `words`. */
static void check_refused(const TopologyOptions *options, int r, const char *words)
{
    Topology *topology = (Topology *)&r; /* must not change */
    CLEANUP_FREE char *error = NULL;

    assert_int_equal(topology_load(options, &topology, &error), r);
    assert_ptr_equal(topology, &r);
    assert_non_null(error);
    if (!strstr(error, words))
        fail_msg("\"%s\" does not say \"%s\"", error, words);
    assert_null(strpbrk(error, "\n\r\t\033"));
    assert_int_equal(error[strlen(error) - 1], '.');
    assert_true(strlen(error) < 500);
}

static void check_synthetic(const char *description, const char *words)
{
    check_refused(&(TopologyOptions){.synthetic = description}, -EINVAL, words);
}

/* The description is quoted unchanged: callers that print it escape it. */
static void test_control_characters(void **state)
{
    Topology *topology;
    CLEANUP_FREE char *error = NULL;

    assert_int_equal(
        topology_load(&(TopologyOptions){.synthetic = "numa:2\n\033[31mpu:x"}, &topology, &error), -EINVAL);
    assert_non_null(strstr(error, "numa:2\n\033[31mpu:x"));
}

static void test_synthetic(void **state)
{
    check_synthetic("nonsense", "\"nonsense\" is not a synthetic description");
    check_synthetic("numa", "expected ':' and a number at its end.");
    check_synthetic("numa:x", " at \"x\".");
    check_synthetic("", "not a synthetic description");
    check_synthetic(":", "not a synthetic description");
    check_synthetic("pu:0", "not a synthetic description");
    check_synthetic("numa:2 pu:2 pu:2", "not a synthetic description");
    check_synthetic("pu:70000", "more than 65536 CPUs");
    check_synthetic("numa:1024 core:1024 pu:2", "more than 65536 CPUs");
    check_synthetic("1024 1024", "more than 65536 CPUs");
    check_synthetic("pu:99999999999999999999", "more than 65536 CPUs");
    check_synthetic("numa:4(memory=1GB) l3:1(size=1) pu:99999", "more than 65536 CPUs");
    check_synthetic("numa:2\n70000", "more than 65536 CPUs");
    check_synthetic("numa:2(memory=1)70000", "more than 65536 CPUs");
    check_synthetic("numa:2 pu:0x20000", "more than 65536 CPUs");
    check_synthetic("core:500 [numa] [numa] [numa] pu:1", "more than 1024 NUMA nodes");
    check_synthetic("pu:-5", "not a synthetic description");
    check_synthetic("numa:1 pu:2(indexes=0,70000)", "above 65535");
    check_synthetic("numa:1100 pu:2", "More than 1024 NUMA nodes");
}

/* Descriptions that hwloc would read differently from how they look, and those for which it would take very
 * long, use all memory, or abort. */
static void test_synthetic_hazards(void **state)
{
    CLEANUP_FREE char *deep = calloc(200, 8);

    /* read as 01243, 9902 and pu:2; hidden numbers; a type far from its number */
    check_synthetic("012439902pu:2", "expected a number at \"012439902pu:2\"");
    check_synthetic("0x12g5 pu:2", "expected a number");
    check_synthetic("pack(:3000000 pu:2", "expected ':' and a number");
    check_synthetic("numa:2((memory=1) pu:2", "expected memory=, size=, indexes= or ')'");
    check_synthetic("numa and 3000000:2 pu:2", "expected ':' and a number");
    check_synthetic("pack:2 [numa(memory=1] pu:2)", "expected a blank or ')'");
    check_synthetic("pack:2 [numa pu:2", "expected ']'");
    check_synthetic("pu: 2", "expected a number");
    check_synthetic("core:2pu:2", "expected a number");

    /* too large */
    check_synthetic("pu:16384", "too many objects on one level");
    check_synthetic("group:4000 group:1 group:1 group:1 pu:1", "too many objects on one level");
    check_synthetic("pu:4000(indexes=65535)", "too many objects on one level");
    check_synthetic("pu:2(indexes=4294967295,0)", "index above 65535");
    check_synthetic("pu:2(indexes=99999999999999999999999,0)", "index above 65535");
    assert_non_null(deep);
    for (size_t i = 0; i < 200; i++)
        (void)strcat(deep, "1 ");
    check_synthetic(deep, "more than 126 levels");

    /* a product that is 0 in 64 bits; a type of a later level */
    check_synthetic("numa:2 pu:2(indexes=1*65536:1*65536:1*65536:1*65536)", "loops of indexes=");
    check_synthetic("pu:2(indexes=1*1:1*1:1*1:1*1:1*1:1*1:1*1:1*1:1*1:1*1:1*1:1*1:1*1:1*1:1*1:1*1:1*1:1*2)",
                    "loops of indexes=");
    check_synthetic("pu:2(indexes=0*2)", "loops of indexes=");
    check_synthetic("pu:2(indexes=2:1)", "expected '*' and a number");
    check_synthetic("pack:2(indexes=core) core:2 pu:2", "expected the type of an earlier level");
    check_synthetic("pack:2 pu:2(indexes=pack:)", "expected the type of an earlier level");
}

/* The largest machines are not refused. */
static void test_synthetic_large(void **state)
{
    static const char *const descriptions[] = {
        "numa:256 core:16 pu:2", "pack:2 core:2 pu:2(indexes=1*2:2*4)",
        "(memory=1GB indexes=0) pack:2[numa(memory=1MB)]\ncore:010 0x2"};
    static const uint32_t n_cpus[] = {8192, 8, 32};

    for (size_t i = 0; i < ARRAY_SIZE(descriptions); i++) {
        CLEANUP(topology_unref_p) Topology *topology = test_machine(descriptions[i]);

        assert_int_equal(topology->n_cpus, n_cpus[i]);
    }
}

static void test_distances(void **state)
{
    check_synthetic("numa:2 pu:1 distances=10,20,20", "expects 4 numbers for 2 nodes, not 3");
    check_synthetic("numa:2 pu:1 distances=10,20,20,10,10", "not 5");
    check_synthetic("pu:1 distances=10,20,20,10", "expects 1 number for 1 node, not 4");
    check_synthetic("numa:2 pu:1 distances=10,0,20,10", "from 10 to 255");
    check_synthetic("numa:2 pu:1 distances=10,256,20,10", "from 10 to 255");
    check_synthetic("numa:2 pu:1 distances=10,-20,20,10", "not \"-20\"");
    check_synthetic("numa:2 pu:1 distances=10,,20,10", "not \"\"");
    check_synthetic("numa:2 pu:1 distances=10,20,20,10,", "not \"\"");
    check_synthetic("numa:2 pu:1 distances=", "not \"\"");
    check_synthetic("numa:2 pu:1 distances=10,20,20,ten", "not \"ten\"");
    check_synthetic("numa:2 pu:1 distances=10, 20,20,10", "not \" 20\"");
    check_synthetic("numa:2 pu:1 distances=11,20,20,10", "10 from a node to itself, not 11");
    check_synthetic("numa:2 pu:1 distances=10,99999999999999999999999999999999999,20,10", "from 10 to 255");
    check_synthetic("distances=10", "not a synthetic description");
    check_synthetic("numa:2 distances=10,20,20,10 pu:1", "not \"10 pu:1\"");
}

static void test_rehearsal(void **state)
{
    check_refused(&(TopologyOptions){.synthetic = "core:4 pu:1", .rehearse = 1}, -EINVAL, "at least 2");
    check_refused(&(TopologyOptions){.synthetic = "core:4 pu:1", .rehearse = 5}, -EINVAL, "there are 4");
    check_refused(&(TopologyOptions){.synthetic = "core:2 pu:2", .rehearse = 3}, -EINVAL, "there are 2");
    check_refused(&(TopologyOptions){.synthetic = "core:4 pu:1", .rehearse = UINT32_MAX}, -EINVAL,
                  "there are 4");
    check_refused(&(TopologyOptions){.synthetic = "numa:2 pu:4", .rehearse = 2}, -EINVAL, "has 2 NUMA nodes");
}

static void test_both_sources(void **state)
{
    check_refused(&(TopologyOptions){.synthetic = "pu:1", .xml = "/dev/null"}, -EINVAL, "not both");
}

/* Writes `size` bytes to a new file and reads it as XML. */
static void check_xml(const void *data, size_t size, int r, const char *words)
{
    char path[] = "/tmp/numaplace-test-XXXXXX";
    CLEANUP_CLOSE int fd = mkostemp(path, O_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, size), size);
    check_refused(&(TopologyOptions){.xml = path}, r, words);
    assert_int_equal(unlink(path), 0);
}

static void test_xml(void **state)
{
    static const char object[] = "<?xml version=\"1.0\"?><topology version=\"2.0\"><object type=\"Machine\">";
    static const char other[] = "<?xml version=\"1.0\"?>\n<html><body>Hello</body></html>\n";
    static const char binary[] = "\x7f"
                                 "ELF\0\0\0\0";
    /* hwloc 2.9 follows a null pointer here. */
    static const char torn[] = "<topologyversion=\"2.0";

    check_xml("", 0, -EINVAL, "is empty");
    check_xml("garbage", 7, -EINVAL, "hwloc cannot load");
    check_xml(torn, sizeof(torn) - 1, -EINVAL, "hwloc cannot load");
    check_xml(object, sizeof(object) - 1, -EINVAL, "hwloc cannot load");
    check_xml(other, sizeof(other) - 1, -EINVAL, "hwloc cannot load");
    check_xml(binary, sizeof(binary) - 1, -EINVAL, "is not an hwloc XML file");
}

static void test_xml_unreadable(void **state)
{
    char *dir = test_tree_new();
    const char *fifo = test_path(dir, "fifo"), *link = test_path(dir, "link"), *huge = test_path(dir, "huge");
    int fd;

    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(symlink("link", link), 0);
    fd = open(huge, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)65 << 20), 0); /* a hole: takes no space */
    (void)close(fd);

    check_refused(&(TopologyOptions){.xml = "/nonexistent/machine.xml"}, -ENOENT,
                  "cannot be read: No such file");
    check_refused(&(TopologyOptions){.xml = ""}, -ENOENT, "cannot be read");
    check_refused(&(TopologyOptions){.xml = dir}, -EISDIR, "cannot be read: Is a directory");
    check_refused(&(TopologyOptions){.xml = link}, -ELOOP, "cannot be read");
    check_refused(&(TopologyOptions){.xml = fifo}, -EINVAL, "is empty");
    check_refused(&(TopologyOptions){.xml = huge}, -EFBIG, "cannot be read: File too large");

    test_tree_remove(dir);
}

/* Placing tasks of this machine by another machine's description would be wrong. */
static void test_environment(void **state)
{
    assert_int_equal(setenv("HWLOC_SYNTHETIC", "numa:2 pu:2", 1), 0);
    check_refused(&(TopologyOptions){0}, -EINVAL, "does not read this machine");
    assert_int_equal(unsetenv("HWLOC_SYNTHETIC"), 0);
}

TEST_MAIN(NULL, NULL, test_synthetic, test_control_characters, test_distances, test_synthetic_hazards,
          test_synthetic_large, test_rehearsal, test_both_sources, test_xml, test_xml_unreadable,
          test_environment)
