/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Incomplete nodes: without CPUs, without memory, or with a part of their memory offline. */

#include "groups.h"
#include "memory.h"

#include <fcntl.h>
#include <sys/syscall.h>

#define NODE_DIR "/sys/devices/system/node"
#define N        64U

static uint64_t online(void)
{
    return file_list(NODE_DIR "/online");
}

static uint64_t cpu_nodes(void)
{
    return file_list(NODE_DIR "/has_cpu");
}

static uint64_t node_cpus(unsigned node)
{
    return file_list(NODE_DIR "/node%u/cpulist", node);
}

/* Each CPU is in one node, and the lists agree with the nodes' own files. */
static void test_lists(void **state)
{
    uint64_t nodes = online(), seen = 0;

    for (unsigned node = 0; node < 64; node++) {
        int64_t total = -1;
        char key[64];

        if (!(nodes & BIT(node)))
            continue;
        assert_int_equal(seen & node_cpus(node), 0);
        seen |= node_cpus(node);
        assert_int_equal(node_cpus(node) != 0, (cpu_nodes() & BIT(node)) != 0);
        (void)snprintf(key, sizeof(key), "Node %u MemTotal:", node);
        assert_true(text_number(file_read(NODE_DIR "/node%u/meminfo", node), key, &total));
        assert_int_equal(total > 0, (memory_nodes() & BIT(node)) != 0);
    }
    assert_int_equal(seen, file_list("/sys/devices/system/cpu/online"));
}

/* Every online node has a row of distances, as long as there are online nodes, with 10 for itself. */
static void test_distances(void **state)
{
    uint64_t nodes = online();

    for (unsigned node = 0; node < 64; node++) {
        unsigned n = 0;
        char *s;

        if (!(nodes & BIT(node)))
            continue;
        s = file_read(NODE_DIR "/node%u/distance", node);
        assert_non_null(s);
        for (unsigned other = 0; other < 64; other++)
            if (nodes & BIT(other)) {
                unsigned long v = strtoul(s, &s, 10);

                assert_true(v >= 10 && v <= 254);
                assert_int_equal(v == 10, other == node);
                n++;
            }
        assert_int_equal(n, bit_count(nodes));
        assert_int_equal(*s, '\n');
    }
}

static unsigned nearest_memory(unsigned node)
{
    char *s = file_read(NODE_DIR "/node%u/distance", node);
    uint64_t nodes = online(), memory = memory_nodes();
    unsigned best = 64;
    unsigned long best_distance = 256;

    assert_non_null(s);
    s = strdup(s);
    assert_non_null(s);
    for (char *p = s; nodes; nodes &= nodes - 1) {
        unsigned long v = strtoul(p, &p, 10);

        if ((memory & nodes & -nodes) && v < best_distance) {
            best = bit_first(nodes);
            best_distance = v;
        }
    }
    free(s);
    assert_true(best < 64);
    return best;
}

/* Memory first touched on a CPU comes from the CPU's node, or from the nearest node with memory. */
static void test_first_touch(void **state)
{
    uint64_t before = mask_get(0), nodes = cpu_nodes();

    for (unsigned node = 0; node < 64; node++) {
        char *p;

        if (!(nodes & BIT(node)) || !(before & node_cpus(node)))
            continue;
        assert_int_equal(mask_set(0, node_cpus(node)), 0);
        p = pages_map(N);
        pages_touch(p, N);
        assert_int_equal(pages_count(0, p, N, (int)nearest_memory(node)), N);
        pages_unmap(p, (size_t)N * PAGE);
    }
    assert_int_equal(mask_set(0, before), 0);
}

/*
 * A node with memory alone
 */

static unsigned need_memory_only(void)
{
    uint64_t nodes = memory_nodes() & ~cpu_nodes();

    if (nodes == 0)
        contract_skip("no node without CPUs");
    return bit_first(nodes);
}

/* Its memory is like any other for policies, moves, and cpusets. Only those that ask for it get it. */
static void test_memory_only(void **state)
{
    unsigned node = need_memory_only(), first = bit_first(memory_nodes());
    int status[N];
    char *p;

    assert_int_equal(node_cpus(node), 0);
    p = pages_on(node, N);
    assert_int_equal(pages_move(0, p, N, (int)first, MPOL_MF_MOVE, status), 0);
    assert_int_equal(pages_count(0, p, N, (int)first), N);
    assert_int_equal(pages_move(0, p, N, (int)node, MPOL_MF_MOVE, status), 0);
    assert_int_equal(pages_count(0, p, N, (int)node), N);
    pages_unmap(p, (size_t)N * PAGE);
}

static void test_memory_only_in_cpuset(void **state)
{
    unsigned node = need_memory_only();
    char *p;
    pid_t pid;

    groups_begin();
    group_make("a");
    assert_int_equal(group_write_list("a", "cpuset.mems", memory_nodes()), 0);
    p = pages_on(bit_first(memory_nodes()), N);
    pid = child_sleep(mask_get(0));
    pages_unmap(p, (size_t)N * PAGE);
    assert_int_equal(group_join("a", pid), 0);
    assert_int_equal(group_write_list("a", "cpuset.mems", BIT(node)), 0);
    assert_int_equal(pages_count(pid, p, N, (int)node), N);
    /* The cpuset's CPUs are not affected. */
    assert_int_equal(mask_get(pid), mask_get(0));
}

/*
 * A node with CPUs alone
 */

static unsigned need_cpus_only(void)
{
    uint64_t nodes = cpu_nodes() & ~memory_nodes();

    if (nodes == 0)
        contract_skip("no node without memory");
    return bit_first(nodes);
}

static void test_cpus_only(void **state)
{
    unsigned node = need_cpus_only();
    unsigned long bits = (unsigned long)BIT(node);
    int status[2] = {99, 99};
    char *p;

    assert_true(online() & BIT(node));
    p = pages_on(bit_first(memory_nodes()), 2);
    assert_int_equal(pages_move(0, p, 2, (int)node, MPOL_MF_MOVE, status), -ENODEV);
    assert_int_equal(status[0], 99);
    assert_int_equal(migrate(0, memory_nodes(), BIT(node)), -EINVAL);
    assert_int_equal(syscall(SYS_set_mempolicy, MPOL_BIND, &bits, 65UL), -1);
    assert_int_equal(errno, EINVAL);
    pages_unmap(p, (size_t)2 * PAGE);
}

/* A cpuset accepts the node, without effect. If the list has no other node, all nodes apply as before. */
static void test_cpus_only_in_cpuset(void **state)
{
    unsigned node = need_cpus_only();
    uint64_t memory = memory_nodes();

    groups_begin();
    group_make("a");
    assert_int_equal(group_write_list("a", "cpuset.mems", BIT(node)), 0);
    assert_int_equal(group_list("a", "cpuset.mems"), BIT(node));
    assert_int_equal(group_list("a", "cpuset.mems.effective"), memory);
    assert_int_equal(group_write_list("a", "cpuset.mems", BIT(node) | memory), 0);
    assert_int_equal(group_list("a", "cpuset.mems"), BIT(node) | memory);
    assert_int_equal(group_list("a", "cpuset.mems.effective"), memory);
}

/*
 * Memory offline
 */

typedef struct Block {
    unsigned node, number;
} Block;

static bool set_state(Block block, const char *wanted)
{
    return file_write(wanted, "/sys/devices/system/memory/memory%u/state", block.number) == 0;
}

static int64_t node_total(unsigned node)
{
    int64_t total = -1;
    char key[64];

    (void)snprintf(key, sizeof(key), "Node %u MemTotal:", node);
    assert_true(text_number(file_read(NODE_DIR "/node%u/meminfo", node), key, &total));
    return total;
}

/* Number of the pages that lie in the `n_frames` page frames from `first` on. */
static size_t count_inside(const char *p, size_t n, uint64_t first, uint64_t n_frames)
{
    int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    size_t count = 0;

    assert_true(fd >= 0);
    for (size_t i = 0; i < n; i++) {
        uint64_t entry = 0;

        assert_int_equal(pread(fd, &entry, sizeof(entry), (off_t)(((uintptr_t)p / PAGE + i) * sizeof(entry))),
                         sizeof(entry));
        count += (entry & (BIT(55) - 1)) - first < n_frames;
    }
    (void)close(fd);
    return count;
}

/* Takes a block offline that has only movable memory (movablecore= on the kernel's command line), and returns how many
 * of the pages were in it. Some such blocks fail all the same: those with memory that the kernel allocated at boot. */
static bool take_block(unsigned node, const char *p, size_t n, size_t frames, Block *ret, size_t *ret_inside)
{
    for (unsigned number = 1024; number-- > 0;) {
        const char *zones = file_read("/sys/devices/system/memory/memory%u/valid_zones", number);
        Block block = {.node = node, .number = number};
        size_t n_inside;

        if (!zones || strcmp(zones, "Movable\n") != 0 ||
            !file_exists(NODE_DIR "/node%u/memory%u", node, number))
            continue;
        n_inside = count_inside(p, n, number * frames, frames);
        if (!set_state(block, "offline"))
            continue;
        *ret = block;
        *ret_inside = n_inside;
        return true;
    }
    return false;
}

/* The block's content is moved elsewhere and not lost. The node is smaller by the block, and whole again
 * afterwards. */
static void test_block(void **state)
{
    const size_t n = (size_t)160 << 8; /* 160 MB: more than a block */
    unsigned node = bit_last(memory_nodes());
    int64_t before = node_total(node);
    Block block = {0};
    size_t bytes, n_inside = 0;
    char *p;

    need_guest();
    if (!file_exists("/sys/devices/system/memory/block_size_bytes"))
        contract_skip("memory cannot be taken offline (CONFIG_MEMORY_HOTREMOVE)");
    bytes = strtoul(file_read("/sys/devices/system/memory/block_size_bytes"), NULL, 16);
    p = pages_on(node, n);
    for (size_t i = 0; i < n; i++)
        *(size_t *)(void *)(p + i * PAGE) = i;
    if (!take_block(node, p, n, bytes / PAGE, &block, &n_inside)) {
        pages_unmap(p, n * PAGE);
        contract_skip("no block of node %u can be taken offline (movablecore=)", node);
    }

    assert_true(file_exists(NODE_DIR "/node%u/memory%u", node, block.number));
    assert_string_equal(file_read("/sys/devices/system/memory/memory%u/state", block.number), "offline\n");
    assert_int_equal(before - node_total(node), bytes / 1024);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(*(size_t *)(void *)(p + i * PAGE), i);
    assert_int_equal(count_inside(p, n, block.number * (bytes / PAGE), bytes / PAGE), 0);
    contract_note("%zu of %zu pages were in it; now %zu are on their node", n_inside, n,
                  pages_count(0, p, n, (int)node));
    assert_true(set_state(block, "online"));
    assert_int_equal(node_total(node), before);
    assert_true(memory_nodes() & BIT(node));
    pages_unmap(p, n * PAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_distances),
        cmocka_unit_test(test_first_touch),
        cmocka_unit_test(test_memory_only),
        cmocka_unit_test_teardown(test_memory_only_in_cpuset, groups_teardown),
        cmocka_unit_test(test_cpus_only),
        cmocka_unit_test_teardown(test_cpus_only_in_cpuset, groups_teardown),
        cmocka_unit_test(test_block),
    };

    return cmocka_run_group_tests_name("contract-nodes", tests, NULL, NULL);
}
