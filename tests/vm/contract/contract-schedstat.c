/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* /proc/schedstat: its format by version, what the two fields of a CPU count, and which domains there are.
 * Relied on by kernel/schedstat.c, probe/cpu/cpu-load.c and topo/domains.c.
 *
 *     version   kernels           cpu line   domain line
 *     15        up to 6.9         9          mask and 36 numbers
 *     16        6.10 to 6.13      9          the same, busy before idle
 *     17        from 6.14 on      9          name, mask and 45 numbers */

#include "support.h"

#include <ctype.h>
#include <sched.h>

#define CPU_FIELDS 9U
#define RUN_FIELD  6U /* counted from 0 */
#define WAIT_FIELD 7U

static unsigned version(void)
{
    return kernel_since(6, 14) ? 17 : kernel_since(6, 10) ? 16 : 15;
}

static const char *need_schedstat(void)
{
    const char *text = file_read("/proc/schedstat");

    if (!text)
        contract_skip("no /proc/schedstat");
    return text;
}

static unsigned count_words(const char *line)
{
    unsigned n = 0;

    for (const char *s = line; *s && *s != '\n'; s++)
        n += *s == ' ' && s[1] != '\n' && s[1] != ' ';
    return n + 1;
}

static void test_head(void **state)
{
    char first[32];
    const char *text = need_schedstat();

    (void)snprintf(first, sizeof(first), "version %u\ntimestamp ", version());
    assert_int_equal(strncmp(text, first, strlen(first)), 0);
    assert_int_equal(text[strlen(text) - 1], '\n');
}

static void test_fields(void **state)
{
    const unsigned domain_words = version() == 17 ? 3 + 45 : 2 + 36;
    uint64_t seen = 0;

    for (const char *line = strstr(need_schedstat(), "cpu"); line && *line; line = strchr(line, '\n') + 1) {
        if (strncmp(line, "cpu", 3) == 0) {
            assert_int_equal(count_words(line), 1 + CPU_FIELDS);
            seen |= BIT(strtoul(line + 3, NULL, 10));
        } else {
            assert_int_equal(strncmp(line, "domain", 6), 0);
            assert_int_equal(count_words(line), domain_words);
            /* The name comes first in versions that have one; a mask is hexadecimal. */
            assert_int_equal(isupper((unsigned char)strchr(line, ' ')[1]) != 0, version() == 17);
        }
    }
    /* The file lists exactly the online CPUs, one line each. */
    assert_int_equal(seen, file_list("/sys/devices/system/cpu/online"));
}

/*
 * Run and wait
 */

static void cpu_fields(unsigned cpu, uint64_t ret[CPU_FIELDS])
{
    char key[16];
    const char *line;

    (void)snprintf(key, sizeof(key), "\ncpu%u ", cpu);
    line = strstr(need_schedstat(), key);
    assert_non_null(line);
    line += strlen(key);
    for (unsigned i = 0; i < CPU_FIELDS; i++) {
        char *end;

        ret[i] = strtoull(line, &end, 10);
        line = end;
    }
}

typedef struct Pair {
    unsigned cpu;
    pid_t pids[2];
    uint64_t before[CPU_FIELDS], now[CPU_FIELDS];
    uint64_t task_before[2][3], task_now[2][3];
    uint64_t much;
    uint64_t stretch, sum; /* time missing from the CPU's field: current stretch, earlier ones */
} Pair;

static bool pair_is_far(void *userdata)
{
    Pair *pair = userdata;

    for (unsigned i = 0; i < 2; i++)
        if (!task_schedstat(pair->pids[i], pair->task_now[i]))
            return false;
    cpu_fields(pair->cpu, pair->now);
    return pair->now[RUN_FIELD] - pair->before[RUN_FIELD] > pair->much &&
           pair->now[WAIT_FIELD] - pair->before[WAIT_FIELD] > pair->much;
}

static void assert_near(uint64_t a, uint64_t b, uint64_t off)
{
    if (a > b + off || b > a + off)
        fail_msg("%llu is not within %llu of %llu", (unsigned long long)a, (unsigned long long)off,
                 (unsigned long long)b);
}

/* Two spinning threads share a CPU: one always runs, the other always waits. The counts of the CPU are those
 * of its tasks, in nanoseconds, also when schedstats are switched off. */
static void share_a_cpu(void)
{
    Pair pair = {.cpu = bit_last(mask_get(0)), .much = UINT64_C(400000000)};
    const uint64_t slack = UINT64_C(200000000); /* unfinished slices, and other tasks that ran there */
    uint64_t run = 0, wait = 0;

    for (unsigned i = 0; i < 2; i++)
        pair.pids[i] = child_spin(BIT(pair.cpu));
    cpu_fields(pair.cpu, pair.before);
    for (unsigned i = 0; i < 2; i++)
        assert_true(task_schedstat(pair.pids[i], pair.task_before[i]));
    assert_true(eventually(pair_is_far, &pair));

    for (unsigned i = 0; i < 2; i++) {
        run += pair.task_now[i][0] - pair.task_before[i][0];
        wait += pair.task_now[i][1] - pair.task_before[i][1];
        assert_true(pair.task_now[i][2] > pair.task_before[i][2]);
    }
    assert_near(run, pair.now[RUN_FIELD] - pair.before[RUN_FIELD], slack);
    assert_true(pair.now[WAIT_FIELD] - pair.before[WAIT_FIELD] + slack >= wait);
    assert_true(pair.now[8] > pair.before[8]);
}

static void test_run_and_wait(void **state)
{
    (void)need_schedstat();
    share_a_cpu();
}

static int restore_schedstats(void **state)
{
    children_end();
    return *state && file_write(*state, "/proc/sys/kernel/sched_schedstats") < 0 ? -1 : 0;
}

static void test_run_and_wait_switched_off(void **state)
{
    static char before[8];

    need_guest();
    (void)snprintf(before, sizeof(before), "%s", file_read("/proc/sys/kernel/sched_schedstats"));
    assert_int_equal(file_write("0", "/proc/sys/kernel/sched_schedstats"), 0);
    *state = before;
    share_a_cpu();
}

/* While one task has a CPU to itself, its run time appears in the task's own file but not in the CPU's. On a
 * busy host some kernel thread soon gets its turn on every CPU of the guest. The task is therefore given
 * priority over kernel threads, and stretches are added up. A stretch of less than two ticks of 4 ms does not
 * count: a tick may come between the two readings. */
#define STRETCH_MIN_NSEC 8000000

static bool lags(void *userdata)
{
    Pair *pair = userdata;

    if (!task_schedstat(pair->pids[0], pair->task_now[0]))
        return false;
    cpu_fields(pair->cpu, pair->now);
    if (pair->now[RUN_FIELD] != pair->before[RUN_FIELD]) {
        pair->sum += pair->stretch >= STRETCH_MIN_NSEC ? pair->stretch : 0;
        pair->stretch = 0;
        memcpy(pair->before, pair->now, sizeof(pair->before));
        memcpy(pair->task_before, pair->task_now, sizeof(pair->task_before));
    } else {
        pair->stretch = pair->task_now[0][0] - pair->task_before[0][0];
    }
    return pair->sum + (pair->stretch >= STRETCH_MIN_NSEC ? pair->stretch : 0) >= pair->much;
}

static void test_lone_spinner_looks_idle(void **state)
{
    const uint64_t mask = mask_get(0);
    Pair pair = {.cpu = bit_last(mask), .much = 30000000};
    bool lagged;

    (void)need_schedstat();
    pair.pids[0] = child_spin(BIT(pair.cpu));
    if (bit_count(mask) > 1) {
        /* Without the right to do this the test takes longer. The test itself must not wait behind the task. */
        assert_int_equal(mask_set(0, mask & ~BIT(pair.cpu)), 0);
        (void)sched_setscheduler(pair.pids[0], SCHED_FIFO, &(struct sched_param){.sched_priority = 1});
    }
    assert_true(task_schedstat(pair.pids[0], pair.task_before[0]));
    cpu_fields(pair.cpu, pair.before);
    lagged = eventually(lags, &pair);
    assert_int_equal(mask_set(0, mask), 0);
    assert_true(lagged);
}

/*
 * Domains
 */

static uint64_t node_of(unsigned cpu, unsigned *ret_node)
{
    uint64_t nodes = file_list("/sys/devices/system/node/online");

    for (unsigned node = 0; node < 64; node++)
        if (nodes & BIT(node)) {
            uint64_t cpus = file_list("/sys/devices/system/node/node%u/cpulist", node);

            if (cpus & BIT(cpu)) {
                *ret_node = node;
                return cpus;
            }
        }
    fail_msg("CPU %u is in no node", cpu);
    return 0;
}

/* CPUs of the nodes at a distance of at most `limit`. */
static uint64_t span_within(unsigned node, unsigned limit)
{
    uint64_t nodes = file_list("/sys/devices/system/node/online"), near = 0, span = 0;
    char *s = file_read("/sys/devices/system/node/node%u/distance", node);

    assert_non_null(s);
    for (unsigned other = 0; other < 64; other++)
        if ((nodes & BIT(other)) && strtoul(s, &s, 10) <= limit)
            near |= BIT(other);
    for (unsigned other = 0; other < 64; other++)
        if (near & BIT(other))
            span |= file_list("/sys/devices/system/node/node%u/cpulist", other);
    return span;
}

static uint64_t parse_hex_mask(const char *s)
{
    uint64_t mask = 0;

    for (; isxdigit((unsigned char)*s) || *s == ','; s++)
        if (*s != ',')
            mask = mask << 4 | (uint64_t)(*s <= '9' ? *s - '0' : tolower((unsigned char)*s) - 'a' + 10);
    return mask;
}

/* The spans of a CPU's domains that reach beyond its node, ascending. */
static unsigned wide_domains(unsigned cpu, uint64_t node_cpus, uint64_t ret[64])
{
    unsigned n = 0;
    char key[16];
    const char *line;

    (void)snprintf(key, sizeof(key), "\ncpu%u ", cpu);
    line = strstr(need_schedstat(), key);
    assert_non_null(line);
    for (line = strchr(line + 1, '\n'); line && strncmp(line + 1, "domain", 6) == 0;
         line = strchr(line + 1, '\n')) {
        const char *s = strchr(line + 1, ' ') + 1;
        uint64_t span;

        if (version() == 17)
            s = strchr(s, ' ') + 1;
        span = parse_hex_mask(s);
        assert_true(span & BIT(cpu));
        if (span & ~node_cpus)
            ret[n++] = span;
    }
    return n;
}

/* There is one domain for each distance from the CPU's node that adds CPUs, and no other. */
static void test_domains_follow_distances(void **state)
{
    uint64_t online = file_list("/sys/devices/system/cpu/online");
    unsigned n_levels = 0;

    (void)need_schedstat();
    for (unsigned cpu = 0; cpu < 64; cpu++) {
        uint64_t have[64], span, before;
        unsigned n = 0, node = 0, n_have;

        if (!(online & BIT(cpu)))
            continue;
        before = node_of(cpu, &node);
        n_have = wide_domains(cpu, before, have);
        for (unsigned distance = 10; distance < 256; distance++) {
            span = span_within(node, distance);
            if (span == before)
                continue;
            assert_true(n < n_have);
            assert_int_equal(have[n++], span);
            before = span;
        }
        assert_int_equal(n, n_have);
        n_levels += n;
    }
    if (n_levels == 0)
        contract_skip("one node: no domains above it");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_head),
        cmocka_unit_test(test_fields),
        cmocka_unit_test_teardown(test_run_and_wait, children_teardown),
        cmocka_unit_test_teardown(test_run_and_wait_switched_off, restore_schedstats),
        cmocka_unit_test_teardown(test_lone_spinner_looks_idle, children_teardown),
        cmocka_unit_test(test_domains_follow_distances),
    };

    return cmocka_run_group_tests_name("contract-schedstat", tests, NULL, NULL);
}
