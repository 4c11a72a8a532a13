/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Memory on chosen nodes, and the system calls that look at it and move it. */

#include "support.h"

#include <linux/mempolicy.h>

#define PAGE ((size_t)4096)
#define HUGE ((size_t)2 << 20)

/* Nodes that have memory. */
uint64_t memory_nodes(void);
/* Skips on machines with fewer than `n` such nodes. */
void need_nodes(unsigned n);

/* Private memory in small pages or, aligned to it, in huge ones; not touched yet. */
void *pages_map(size_t n_pages);
void *huge_map(size_t n_blocks);
/* Private memory, touched, on that node. */
void *pages_on(unsigned node, size_t n_pages);
void *huge_on(unsigned node, size_t n_blocks);
void pages_unmap(void *p, size_t bytes);
/* Writes a byte to each page. */
void pages_touch(void *p, size_t n_pages);

/* Our own policy for new memory: a node, or none again. */
void policy_node(unsigned node);
void policy_default(void);

/* move_pages(2): `n` pages from `p` on, all to `node` (-1: only asks). Returns what the call returned, or -errno. */
long pages_move(pid_t pid, const void *p, size_t n, int node, int flags, int *status);
long migrate(pid_t pid, uint64_t from, uint64_t to);

/* How many of the pages are on the node; of a child at the same address with its pid. */
size_t pages_count(pid_t pid, const void *p, size_t n, int node);
/* A counter of /proc/vmstat. */
uint64_t vmstat(const char *name);
