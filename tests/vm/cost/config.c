/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* One table row per argument. The lists ("nodes", "cpus", "dist") have parsers of their own. Whether they fit
 * each other is checked at the end, because their order is free. */

#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define CACHE_KIB_MIN 16U

typedef struct Key {
    const char *name;
    int (*parse)(const char *value, const struct Key *key, Config *c);
    size_t offset;
    uint32_t min;
    uint32_t max;
    const char *expected;
} Key;

/* Reads digits and stops at the first other character. */
static int take_number(const char **s, uint32_t max, uint32_t *ret)
{
    const char *p = *s;
    uint64_t n = 0;

    if (*p < '0' || *p > '9')
        return -EINVAL;
    for (; *p >= '0' && *p <= '9'; p++) {
        n = n * 10 + (uint64_t)(*p - '0');
        if (n > max)
            return -ERANGE;
    }
    *ret = (uint32_t)n;
    *s = p;
    return 0;
}

static int parse_number(const char *value, const Key *key, Config *c)
{
    uint32_t n;

    if (take_number(&value, key->max, &n) < 0 || *value != '\0' || n < key->min)
        return -EINVAL;
    *(uint32_t *)((char *)c + key->offset) = n;
    return 0;
}

/* The caches index by masks, so their sizes are powers of two. The smallest has a set for each line of a
 * page. 0 means no cache, where that is allowed. */
static int parse_power(const char *value, const Key *key, Config *c)
{
    uint32_t n;

    if (take_number(&value, key->max, &n) < 0 || *value != '\0' || (n & (n - 1)) != 0)
        return -EINVAL;
    if (n < CACHE_KIB_MIN && (n > 0 || key->min > 0))
        return -EINVAL;
    *(uint32_t *)((char *)c + key->offset) = n;
    return 0;
}

/* A number with up to three decimals, kept as thousandths. */
static int parse_milli(const char *value, const Key *key, Config *c)
{
    uint32_t whole, unit = 100, milli = 0;

    if (take_number(&value, key->max / 1000, &whole) < 0)
        return -EINVAL;
    if (*value == '.') {
        for (value++; *value >= '0' && *value <= '9' && unit > 0; value++, unit /= 10)
            milli += (uint32_t)(*value - '0') * unit;
    }
    if (*value != '\0' || whole * 1000 + milli < key->min || whole * 1000 + milli > key->max)
        return -EINVAL;
    *(uint32_t *)((char *)c + key->offset) = whole * 1000 + milli;
    return 0;
}

static int parse_switch(const char *value, const Key *key, Config *c)
{
    if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0)
        return -EINVAL;
    *(bool *)((char *)c + key->offset) = value[0] == '1';
    return 0;
}

static int parse_out(const char *value, const Key *key, Config *c)
{
    if (*value == '\0')
        return -EINVAL;
    c->out = value;
    return 0;
}

/* Reads "A:B:C" into at most `n_max` numbers. Stops at the end or at a slash. */
static int take_list(const char **s, uint32_t max, uint32_t *list, unsigned n_max, unsigned *ret_n)
{
    unsigned n = 0;

    for (;; (*s)++) {
        if (n == n_max || take_number(s, max, &list[n]) < 0)
            return -EINVAL;
        n++;
        if (**s != ':')
            break;
    }
    *ret_n = n;
    return 0;
}

static int parse_nodes(const char *value, const Key *key, Config *c)
{
    uint32_t mib[COST_NODES_MAX];

    if (take_list(&value, key->max, mib, COST_NODES_MAX, &c->n_nodes) < 0 || *value != '\0')
        return -EINVAL;
    for (unsigned i = 0; i < c->n_nodes; i++)
        c->node_mib[i] = mib[i];
    return 0;
}

static int parse_cpus(const char *value, const Key *key, Config *c)
{
    if (take_list(&value, key->max, c->cpu_node, COST_CPUS_MAX, &c->n_cpus) < 0 || *value != '\0')
        return -EINVAL;
    return 0;
}

static int parse_dist(const char *value, const Key *key, Config *c)
{
    unsigned row = 0, columns = 0, n;

    for (;; value++) {
        if (row == COST_NODES_MAX || take_list(&value, key->max, c->distance[row], COST_NODES_MAX, &n) < 0)
            return -EINVAL;
        if (row++ == 0)
            columns = n;
        if (n != columns)
            return -EINVAL;
        if (*value != '/')
            break;
    }
    if (*value != '\0' || row != columns)
        return -EINVAL;
    c->n_distances = row;
    return 0;
}

#define NUMBER(member, minimum, maximum, text) parse_number, offsetof(Config, member), minimum, maximum, text

static const Key keys[] = {
    {"nodes", parse_nodes, 0, 0, 1U << 24, "MiB of each node, as 512:512"},
    {"cpus", parse_cpus, 0, 0, COST_NODES_MAX - 1, "the node of each CPU, as 0:0:1:1"},
    {"dist", parse_dist, 0, 0, COST_DISTANCE_MAX, "a square table, rows parted by slashes, as 10:20/20:10"},
    {"out", parse_out, 0, 0, 0, "a file name"},
    {"local", NUMBER(local_nsec, 1, 100000, "nanoseconds, 1 to 100000")},
    {"remote", NUMBER(remote_nsec, 1, 100000, "nanoseconds at distance 20, 1 to 100000")},
    {"llclat", NUMBER(llc_nsec, 0, 100000, "nanoseconds, 0 to 100000")},
    {"walk", NUMBER(walk_nsec, 0, 100000, "nanoseconds, 0 to 100000")},
    {"wake", NUMBER(wake_nsec, 0, 1000000, "nanoseconds, 0 to 1000000")},
    {"pause", NUMBER(pause_nsec, 0, 100000, "nanoseconds, 0 to 100000")},
    {"insn", NUMBER(insn_psec, 1, 1000000, "picoseconds, 1 to 1000000")},
    {"seq", NUMBER(sequence_permille, 0, 1000, "thousandths of the price, 0 to 1000")},
    {"scale", parse_milli, offsetof(Config, scale_permille), 1, 1000000, "a factor, 0.001 to 1000"},
    {"bw", parse_milli, offsetof(Config, bandwidth_mbs), 0, 1000000, "GB/s, up to 1000; 0 is unlimited"},
    {"cache", parse_power, offsetof(Config, cache_kib), CACHE_KIB_MIN, 65536,
     "KiB, a power of two from 16 to 65536"},
    {"llc", parse_power, offsetof(Config, llc_kib), 0, 1U << 20,
     "KiB, a power of two from 16 to 1048576, or 0"},
    {"llcs", NUMBER(n_llcs, 1, COST_CPUS_MAX, "last-level caches of each node, 1 to 64")},
    {"slice", NUMBER(slice_nsec, 100, 1000000, "nanoseconds, 100 to 1000000")},
    {"start", parse_switch, offsetof(Config, start), 0, 0, "0 or 1"},
};

__attribute__((format(printf, 3, 4))) static int fail(char *error, size_t size, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    (void)vsnprintf(error, size, format, ap);
    va_end(ap);
    return -EINVAL;
}

static int parse_word(const char *word, Config *c, char *error, size_t size)
{
    const char *value = strchr(word, '=');

    if (!value)
        return fail(error, size, "'%s': expected key=value", word);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (strncmp(word, keys[i].name, (size_t)(value - word)) != 0 || keys[i].name[value - word] != '\0')
            continue;
        if (keys[i].parse(value + 1, &keys[i], c) < 0)
            return fail(error, size, "'%s': expected %s", word, keys[i].expected);
        return 0;
    }
    return fail(error, size, "'%s': no such argument", word);
}

static int check_distances(const Config *c, char *error, size_t size)
{
    if (c->n_distances != c->n_nodes)
        return fail(error, size, "dist: %u rows for %u nodes", c->n_distances, c->n_nodes);
    for (unsigned i = 0; i < c->n_nodes; i++) {
        for (unsigned j = 0; j < c->n_nodes; j++) {
            if ((i == j) != (c->distance[i][j] == COST_DISTANCE_LOCAL) ||
                c->distance[i][j] < COST_DISTANCE_LOCAL)
                return fail(error, size,
                            "dist: %u from node %u to %u: expected 10 on the diagonal and more elsewhere",
                            c->distance[i][j], i, j);
        }
    }
    return 0;
}

/* The CPUs of each node must divide evenly among its LLCs. */
static int check_llcs(const Config *c, char *error, size_t size)
{
    unsigned n[COST_NODES_MAX] = {0};

    for (unsigned i = 0; i < c->n_cpus; i++)
        n[c->cpu_node[i]]++;
    for (unsigned i = 0; i < c->n_nodes; i++) {
        if (n[i] % c->n_llcs != 0)
            return fail(error, size, "llcs: %u CPUs of node %u for %u caches", n[i], i, c->n_llcs);
    }
    return 0;
}

static int check(const Config *c, char *error, size_t size)
{
    uint64_t total = 0;

    if (c->n_nodes == 0 || c->n_cpus == 0 || c->n_distances == 0)
        return fail(error, size, "nodes=, cpus= and dist= are needed");
    for (unsigned i = 0; i < c->n_cpus; i++) {
        if (c->cpu_node[i] >= c->n_nodes)
            return fail(error, size, "cpus: CPU %u on node %u of %u nodes", i, c->cpu_node[i], c->n_nodes);
    }
    for (unsigned i = 0; i < c->n_nodes; i++)
        total += c->node_mib[i];
    if (total == 0)
        return fail(error, size, "nodes: no memory");
    if (c->remote_nsec < c->local_nsec)
        return fail(error, size, "remote=%u is below local=%u", c->remote_nsec, c->local_nsec);
    return check_distances(c, error, size) < 0 ? -EINVAL : check_llcs(c, error, size);
}

int config_parse(int count, char **arguments, Config *ret, char *error, size_t error_size)
{
    /* README.md gives the sources of these values. */
    Config c = {
        .local_nsec = 90,
        .remote_nsec = 180,
        .llc_nsec = 15,
        .walk_nsec = 10,
        .wake_nsec = 1000,
        .pause_nsec = 45,
        .insn_psec = 300,
        .scale_permille = 4000,
        .bandwidth_mbs = 12000,
        .sequence_permille = 80,
        .cache_kib = 256,
        .llc_kib = 1024,
        .n_llcs = 1,
        .slice_nsec = 1000,
    };
    int r;

    for (int i = 0; i < count; i++) {
        r = parse_word(arguments[i], &c, error, error_size);
        if (r < 0)
            return r;
    }
    r = check(&c, error, error_size);
    if (r < 0)
        return r;
    *ret = c;
    return 0;
}

uint64_t config_latency_nsec(const Config *c, uint32_t distance)
{
    uint64_t step = c->remote_nsec - c->local_nsec;

    assert(distance >= COST_DISTANCE_LOCAL);
    return (c->local_nsec * 10ULL + step * (distance - COST_DISTANCE_LOCAL)) * c->scale_permille / 10000;
}

int64_t config_scaled_psec(const Config *c, uint64_t nsec)
{
    return (int64_t)(nsec * c->scale_permille);
}
