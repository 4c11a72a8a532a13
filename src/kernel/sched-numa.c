/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The lines, after about fifty others:
 *
 *     mm->numa_scan_seq                            :                    4
 *     numa_pages_migrated                          :                  512
 *     numa_preferred_nid                           :                    1
 *     total_numa_faults                            :                 2048
 *     current_node=1, numa_group_id=1234
 *     numa_faults node=0 task_private=3 task_shared=0 group_private=6 group_shared=0
 *
 * The first line shows the name of the task verbatim, and a process may put a newline into it. A name has 15
 * bytes at most and is followed by " (PID, #threads: N)", so a line that begins within NAME_MAX_LEN bytes is
 * part of the first one: it can neither forge one of the lines above nor look like a malformed one. */

#include "kernel/sched-numa.h"

#include "base/scan.h"
#include "base/util.h"
#include "kernel/taskstat.h"

#include <string.h>

#define NAME_MAX_LEN 15 /* TASK_COMM_LEN less its NUL */

/* A line "key<blanks>:<blanks>number". Returns whether it has this key; *ret_r is then 0 or -EINVAL. */
static bool take_number(const char *line, const char *key, int64_t min, int64_t max, int64_t *ret, int *ret_r)
{
    bool minus;
    uint64_t v;

    if (!scan_word(&line, key) || (*line != ' ' && *line != ':'))
        return false;
    *ret_r = -EINVAL;
    line += strspn(line, " ");
    if (*line++ != ':')
        return true;
    line += strspn(line, " ");
    minus = scan_word(&line, "-");
    if (!scan_u64(&line, &v) || *line != '\n' || v > INT64_MAX)
        return true;
    *ret = minus ? -(int64_t)v : (int64_t)v;
    *ret_r = *ret < min || *ret > max ? -EINVAL : 0;
    return true;
}

static bool scan_pair(const char **p, const char *key, uint64_t max, uint64_t *ret)
{
    return scan_word(p, key) && scan_u64(p, ret) && *ret <= max;
}

static int take_group(const char *line, SchedNuma *ret)
{
    uint64_t node, group;

    if (!scan_pair(&line, "current_node=", SCHED_NUMA_NODES_MAX, &node) ||
        !scan_pair(&line, ", numa_group_id=", INT32_MAX, &group) || *line != '\n')
        return -EINVAL;
    ret->group = (pid_t)group;
    return 0;
}

static int take_node(const char *line, SchedNuma *ret)
{
    SchedNumaNode value;
    uint64_t node;

    if (!scan_pair(&line, "numa_faults node=", SCHED_NUMA_NODES_MAX - 1, &node) ||
        !scan_pair(&line, " task_private=", UINT64_MAX, &value.task_private) ||
        !scan_pair(&line, " task_shared=", UINT64_MAX, &value.task_shared) ||
        !scan_pair(&line, " group_private=", UINT64_MAX, &value.group_private) ||
        !scan_pair(&line, " group_shared=", UINT64_MAX, &value.group_shared) || *line != '\n')
        return -EINVAL;
    value.node = (uint32_t)node;
    if (ret->n_nodes > 0 && ret->nodes[ret->n_nodes - 1].node >= value.node)
        return -EINVAL;
    ret->nodes[ret->n_nodes++] = value;
    return 0;
}

/* Which lines were found. */
#define FOUND_SEQUENCE  (1U << 0)
#define FOUND_PREFERRED (1U << 1)
#define FOUND_TOTAL     (1U << 2)
#define FOUND_GROUP     (1U << 3)
#define FOUND_ALL       (FOUND_PREFERRED | FOUND_TOTAL | FOUND_GROUP)

static int take(const char *line, SchedNuma *ret, unsigned *found)
{
    const char *word = line;
    int64_t v = 0;
    int r = 0;

    if (take_number(line, "mm->numa_scan_seq", 0, UINT32_MAX, &v, &r)) {
        ret->scan_sequence = (uint32_t)v;
        *found |= FOUND_SEQUENCE;
    } else if (take_number(line, "numa_preferred_nid", -1, SCHED_NUMA_NODES_MAX - 1, &v, &r)) {
        ret->preferred_node = (int32_t)v;
        *found |= FOUND_PREFERRED;
    } else if (take_number(line, "total_numa_faults", 0, INT64_MAX, &v, &r)) {
        ret->total_faults = (uint64_t)v;
        *found |= FOUND_TOTAL;
    } else if (scan_word(&word, "current_node=")) {
        r = take_group(line, ret);
        *found |= FOUND_GROUP;
    } else if (scan_word(&word, "numa_faults ")) {
        r = take_node(line, ret);
    }
    return r;
}

int sched_numa_parse(const char *text, SchedNuma *ret)
{
    const char *start = text;
    unsigned found = 0;

    ret->preferred_node = -1;
    ret->group = 0;
    ret->total_faults = 0;
    ret->scan_sequence = 0;
    ret->n_nodes = 0;
    while (*text) {
        const char *end = strchr(text, '\n');
        int r;

        if (!end)
            return -EINVAL;
        r = text - start <= NAME_MAX_LEN ? 0 : take(text, ret, &found);
        if (r < 0)
            return r;
        text = end + 1;
    }
    /* A kernel thread has no memory, and so no scan sequence. */
    if (!(found & FOUND_SEQUENCE))
        return -ENOENT;
    return (found & FOUND_ALL) == FOUND_ALL && ret->n_nodes > 0 ? 0 : -EINVAL;
}

int sched_numa_parse_status(const char *text, pid_t *ret)
{
    const char *s = taskstat_find_value(text, "Ngid:\t");
    uint64_t v;

    if (!s || !scan_u64(&s, &v) || *s != '\n' || v > INT32_MAX)
        return -ENOENT;
    *ret = (pid_t)v;
    return 0;
}
