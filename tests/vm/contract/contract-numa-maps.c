/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* /proc/PID/numa_maps and maps, and the meminfo of nodes: they tell where memory is, which processes share
 * it, and how much is free. */

#include "memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define N 64U

/* The line of the mapping that begins at `p`, in a file whose lines begin with an address. Fails the test
 * when there is none. */
static char *line_of(pid_t pid, const char *file, const void *p)
{
    char address[32], *text = file_read("/proc/%d/%s", (int)pid, file);

    if (!text)
        contract_skip("no /proc/PID/%s", file);
    (void)snprintf(address, sizeof(address), "%lx", (unsigned long)(uintptr_t)p);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        if (strncmp(line, address, strlen(address)) == 0 && strchr(" -", line[strlen(address)]))
            return line;
    fail_msg("no line %s in %s", address, file);
    return NULL;
}

/* The number after " KEY="; -1 when there is none. */
static long number_of(const char *line, const char *key)
{
    char word[64];
    const char *found;

    (void)snprintf(word, sizeof(word), " %s=", key);
    found = strstr(line, word);
    return found ? strtol(found + strlen(word), NULL, 10) : -1;
}

static long on_node(const char *line, unsigned node)
{
    char key[16];

    (void)snprintf(key, sizeof(key), "N%u", node);
    return number_of(line, key);
}

static void test_pages_by_node(void **state)
{
    need_nodes(1);
    for (unsigned node = bit_first(memory_nodes()); node <= bit_last(memory_nodes()); node++) {
        char *p, *line;

        if (!(memory_nodes() & BIT(node)))
            continue;
        p = pages_on(node, N);
        line = line_of(getpid(), "numa_maps", p);
        assert_int_equal(number_of(line, "anon"), N);
        assert_int_equal(on_node(line, node), N);
        assert_int_equal(number_of(line, "kernelpagesize_kB"), PAGE / 1024);
        pages_unmap(p, N * PAGE);
    }
}

/* A transparent huge page counts as its small pages. */
static void test_huge(void **state)
{
    char *p, *line;

    need_nodes(1);
    p = huge_on(bit_first(memory_nodes()), 1);
    line = line_of(getpid(), "numa_maps", p);
    assert_int_equal(number_of(line, "anon"), HUGE / PAGE);
    assert_int_equal(number_of(line, "kernelpagesize_kB"), PAGE / 1024);
    pages_unmap(p, HUGE);
}

static char *map_shared(const char *name)
{
    int fd = memfd_create(name, MFD_CLOEXEC);
    char *p;

    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, N * PAGE), 0);
    p = mmap(NULL, N * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)close(fd);
    assert_ptr_not_equal(p, MAP_FAILED);
    pages_touch(p, N);
    return p;
}

typedef struct Toucher {
    char *p;
    volatile bool done;
} Toucher;

static void toucher_main(void *userdata)
{
    Toucher *toucher = userdata;

    pages_touch(toucher->p, N);
    toucher->done = true;
    for (;;)
        nap();
}

static bool toucher_done(void *userdata)
{
    return ((Toucher *)userdata)->done;
}

/* Shared memory has a name that identifies it, with blanks escaped, and the number of processes that map a
 * page of it. */
static void test_shared(void **state)
{
    char *p = map_shared("a b"), *line = line_of(getpid(), "numa_maps", p);
    Toucher *toucher;

    assert_non_null(strstr(line, " file=/memfd:a\\040b\\040(deleted) "));
    assert_int_equal(number_of(line, "anon"), -1);
    assert_int_equal(number_of(line, "mapmax"), -1);

    toucher = shared_alloc(sizeof(*toucher));
    toucher->p = p;
    (void)child_start(toucher_main, toucher);
    assert_true(eventually(toucher_done, toucher));
    line = line_of(getpid(), "numa_maps", p);
    assert_int_equal(number_of(line, "mapmax"), 2);
    (void)munmap(p, N * PAGE);
}

/* In a private mapping of a file, written pages are anonymous. */
static void test_private_file(void **state)
{
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    volatile char *p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    const char *line;

    (void)close(fd);
    assert_ptr_not_equal(p, MAP_FAILED);
    (void)p[PAGE];
    p[0] = 1;
    line = line_of(getpid(), "numa_maps", (const void *)p);
    assert_non_null(strstr(line, " file=/"));
    assert_int_equal(number_of(line, "anon"), 1);
    (void)munmap((void *)p, 2 * PAGE);
}

/* "DEVICE INODE" of a line of maps. */
static void object_of(pid_t pid, const void *p, char *ret, size_t size)
{
    char device[32], inode[32], shared;

    assert_int_equal(sscanf(line_of(pid, "maps", p), "%*s %*3s%c %*s %31s %31s", &shared, device, inode), 3);
    assert_int_equal(shared, 's');
    (void)snprintf(ret, size, "%s %s", device, inode);
}

/* The same memory has the same device and inode in every process, other memory has different ones. */
static void test_who_shares(void **state)
{
    char *a = map_shared("same"), *b = map_shared("same"), ours[64], theirs[64], other[64];
    pid_t pid = child_sleep(mask_get(0));

    object_of(getpid(), a, ours, sizeof(ours));
    object_of(pid, a, theirs, sizeof(theirs));
    object_of(getpid(), b, other, sizeof(other));
    assert_string_equal(ours, theirs);
    assert_string_not_equal(ours, other);
    (void)munmap(a, N * PAGE);
    (void)munmap(b, N * PAGE);
}

/* A process that has ended has no memory: the text is empty, or reading fails. */
static void test_ended(void **state)
{
    pid_t pid = fork();
    siginfo_t info;
    const char *text;

    assert_true(pid >= 0);
    if (pid == 0)
        _exit(0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    text = file_read("/proc/%d/numa_maps", (int)pid);
    assert_true(!text || !*text);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_meminfo(void **state)
{
    static const char *const keys[] = {"MemTotal", "MemFree", "Inactive(file)", "Dirty", "Writeback"};

    need_nodes(1);
    for (unsigned node = bit_first(memory_nodes()); node <= bit_last(memory_nodes()); node++)
        for (size_t i = 0; i < ARRAY_SIZE(keys) && memory_nodes() & BIT(node); i++) {
            const char *text = file_read("/sys/devices/system/node/node%u/meminfo", node);
            char key[64], unit[4];
            unsigned long kb;

            (void)snprintf(key, sizeof(key), "Node %u %s:", node, keys[i]);
            assert_non_null(text);
            text = strstr(text, key);
            assert_non_null(text);
            assert_int_equal(sscanf(text + strlen(key), " %lu %3s", &kb, unit), 2);
            assert_string_equal(unit, "kB");
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pages_by_node),
        cmocka_unit_test(test_huge),
        cmocka_unit_test_teardown(test_shared, children_teardown),
        cmocka_unit_test(test_private_file),
        cmocka_unit_test_teardown(test_who_shares, children_teardown),
        cmocka_unit_test(test_ended),
        cmocka_unit_test(test_meminfo),
    };

    return cmocka_run_group_tests_name("contract-numa-maps", tests, NULL, NULL);
}
