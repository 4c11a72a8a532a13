/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Memory on chosen nodes, and the system calls that query and move it. */

#include "support.h"

#include <linux/mempolicy.h>

#define PAGE ((size_t)4096)
#define HUGE ((size_t)2 << 20)

/* Nodes that have memory. */
uint64_t memory_nodes(void);
/* Skips on machines with fewer than `n` such nodes. */
void need_nodes(unsigned n);

/* Private memory in small pages or, aligned, in huge ones. Not touched yet. */
void *pages_map(size_t n_pages);
void *huge_map(size_t n_blocks);
/* Private memory on that node, touched. */
void *pages_on(unsigned node, size_t n_pages);
void *huge_on(unsigned node, size_t n_blocks);
void pages_unmap(void *p, size_t bytes);
/* Writes a byte to each page. */
void pages_touch(void *p, size_t n_pages);

/* The test's own policy for new memory: a node, or none again. */
void policy_node(unsigned node);
void policy_default(void);

/* move_pages(2): moves `n` pages from `p` on to `node` (-1: only queries). Returns the result of the call, or
 * -errno. */
long pages_move(pid_t pid, const void *p, size_t n, int node, int flags, int *status);
long migrate(pid_t pid, uint64_t from, uint64_t to);

/* How many of the pages are on the node; with the pid of a child, of its pages at the same addresses. */
size_t pages_count(pid_t pid, const void *p, size_t n, int node);
/* A counter of /proc/vmstat. */
uint64_t vmstat(const char *name);
