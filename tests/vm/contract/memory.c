/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "memory.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#define BITS 65UL /* the kernel uses one less than it is told */

uint64_t memory_nodes(void)
{
    return file_list("/sys/devices/system/node/has_memory");
}

void need_nodes(unsigned n)
{
    if (bit_count(memory_nodes()) < n)
        contract_skip("%u nodes with memory are needed", n);
}

void *pages_map(size_t n_pages)
{
    void *p = mmap(NULL, n_pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(p, MAP_FAILED);
    assert_int_equal(madvise(p, n_pages * PAGE, MADV_NOHUGEPAGE), 0);
    return p;
}

void *huge_map(size_t n_blocks)
{
    size_t bytes = n_blocks * HUGE;
    char *p = mmap(NULL, bytes + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *start;

    assert_ptr_not_equal(p, MAP_FAILED);
    start = (char *)(((uintptr_t)p + HUGE - 1) / HUGE * HUGE);
    if (start > p)
        assert_int_equal(munmap(p, (size_t)(start - p)), 0);
    assert_int_equal(munmap(start + bytes, HUGE - (size_t)(start - p)), 0);
    assert_int_equal(madvise(start, bytes, MADV_HUGEPAGE), 0);
    return start;
}

void pages_touch(void *p, size_t n_pages)
{
    for (size_t i = 0; i < n_pages; i++)
        ((volatile char *)p)[i * PAGE] = 1;
}

void *pages_on(unsigned node, size_t n_pages)
{
    void *p = pages_map(n_pages);

    policy_node(node);
    pages_touch(p, n_pages);
    policy_default();
    assert_int_equal(pages_count(0, p, n_pages, (int)node), n_pages);
    return p;
}

void *huge_on(unsigned node, size_t n_blocks)
{
    uint64_t before = vmstat("thp_fault_alloc");
    void *p = huge_map(n_blocks);

    policy_node(node);
    for (size_t i = 0; i < n_blocks; i++)
        pages_touch((char *)p + i * HUGE, 1);
    policy_default();
    if (vmstat("thp_fault_alloc") < before + n_blocks)
        contract_skip("no transparent huge pages to be had");
    return p;
}

void pages_unmap(void *p, size_t bytes)
{
    assert_int_equal(munmap(p, bytes), 0);
}

void policy_node(unsigned node)
{
    unsigned long nodes = (unsigned long)BIT(node);

    assert_int_equal(syscall(SYS_set_mempolicy, MPOL_BIND, &nodes, BITS), 0);
}

void policy_default(void)
{
    assert_int_equal(syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0UL), 0);
}

long pages_move(pid_t pid, const void *p, size_t n, int node, int flags, int *status)
{
    const void **pages = calloc(n, sizeof(*pages));
    int *nodes = calloc(n, sizeof(*nodes));
    long r;

    assert_non_null(pages);
    assert_non_null(nodes);
    for (size_t i = 0; i < n; i++) {
        pages[i] = (const char *)p + i * PAGE;
        nodes[i] = node;
    }
    r = syscall(SYS_move_pages, pid, n, pages, node < 0 ? NULL : nodes, status, flags);
    r = r < 0 ? -errno : r;
    free(nodes);
    free(pages);
    return r;
}

long migrate(pid_t pid, uint64_t from, uint64_t to)
{
    unsigned long old = (unsigned long)from, new = (unsigned long)to;
    long r = syscall(SYS_migrate_pages, pid, BITS, &old, &new);

    return r < 0 ? -errno : r;
}

size_t pages_count(pid_t pid, const void *p, size_t n, int node)
{
    int *status = calloc(n, sizeof(*status));
    size_t count = 0;

    assert_non_null(status);
    assert_int_equal(pages_move(pid, p, n, -1, 0, status), 0);
    for (size_t i = 0; i < n; i++)
        count += status[i] == node;
    free(status);
    return count;
}

uint64_t vmstat(const char *name)
{
    char key[64];
    int64_t v = 0;

    (void)snprintf(key, sizeof(key), "%s ", name);
    if (!text_number(file_read("/proc/vmstat"), key, &v))
        fail_msg("no %s in /proc/vmstat", name);
    return (uint64_t)v;
}
