/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A CPU goes offline and comes back: what the files say, and what becomes of masks. Relied on by probe/cpu/cpus.c,
 * probe/cpu/cpu-load.c, probe/tasks/masks.c and act (masks are compared within the online CPUs).
 *
 *     mask set              while it is offline       when it is back
 *     that CPU alone        all CPUs of the cpuset    the same: all kernels forget the mask
 *     alone, asleep         none at all               that CPU
 *     that and others       the others                that and the others
 *
 * Before Linux 6.2, a mask set while a CPU is offline never has that CPU, whatever was asked for.
 *
 * In a cpuset below the root's, the whole cpuset is applied anew, as by a write to it (see contract-cpuset.c), also to
 * a sleeping thread. */

#include "groups.h"

#define CPU_DIR "/sys/devices/system/cpu"

static uint64_t all;
static unsigned victim, other; /* the last CPU, and the one before */

static int setup(void **state)
{
    all = mask_get(0);
    if (bit_count(all) > 1) {
        victim = bit_last(all);
        other = bit_last(all & ~BIT(victim));
    }
    return 0;
}

static void begin(void)
{
    need_guest();
    if (bit_count(all) < 2 || !file_exists(CPU_DIR "/cpu%u/online", victim))
        contract_skip("no CPU can be taken offline");
}

static void set_online(bool online)
{
    assert_int_equal(file_write(online ? "1" : "0", CPU_DIR "/cpu%u/online", victim), 0);
}

static int end(void **state)
{
    (void)file_write("1", CPU_DIR "/cpu%u/online", victim);
    return children_teardown(state);
}

static int end_groups(void **state)
{
    (void)file_write("1", CPU_DIR "/cpu%u/online", victim);
    return groups_teardown(state);
}

/* The first CPU cannot go offline. */
static void test_first_stays(void **state)
{
    need_guest();
    assert_false(file_exists(CPU_DIR "/cpu0/online"));
}

static bool has_line(const char *path)
{
    char key[16];
    const char *text = file_read("%s", path);

    assert_non_null(text);
    (void)snprintf(key, sizeof(key), "\ncpu%u ", victim);
    return strstr(text, key) != NULL;
}

static unsigned node_of_victim(void)
{
    uint64_t nodes = file_list("/sys/devices/system/node/online");

    for (unsigned node = 0; node < 64; node++)
        if ((nodes & BIT(node)) && (file_list("/sys/devices/system/node/node%u/cpulist", node) & BIT(victim)))
            return node;
    return 64;
}

static void assert_files(unsigned node, uint64_t siblings, bool online)
{
    uint64_t rest = online ? 0 : BIT(victim);

    assert_int_equal(file_list(CPU_DIR "/online"), all & ~rest);
    assert_int_equal(file_list(CPU_DIR "/offline") & BIT(victim), rest);
    assert_int_equal(file_list(CPU_DIR "/present"), all);
    assert_true(file_exists(CPU_DIR "/cpu%u", victim));
    assert_int_equal(file_exists(CPU_DIR "/cpu%u/topology/core_id", victim), online);
    assert_int_equal(file_exists(CPU_DIR "/cpu%u/cache/index0/level", victim), online);
    assert_int_equal(file_list(CPU_DIR "/cpu%u/topology/package_cpus_list", other), siblings & ~rest);
    assert_int_equal(file_list("/sys/devices/system/node/node%u/cpulist", node) & BIT(victim),
                     BIT(victim) & ~rest);
    assert_int_equal(has_line("/proc/stat"), online);
    assert_int_equal(has_line("/proc/schedstat"), online);
}

static void test_files(void **state)
{
    uint64_t siblings;
    unsigned node;

    begin();
    node = node_of_victim();
    assert_true(node < 64);
    siblings = file_list(CPU_DIR "/cpu%u/topology/package_cpus_list", other);
    assert_files(node, siblings, true);
    set_online(false);
    assert_files(node, siblings, false);
    set_online(true);
    assert_files(node, siblings, true);
}

static uint64_t allowed_list(pid_t pid)
{
    static const char key[] = "\nCpus_allowed_list:\t";
    const char *text = file_read("/proc/%d/status", pid), *list = text ? strstr(text, key) : NULL;

    assert_non_null(list);
    return list_parse(list + strlen(key));
}

/* A child in the root's group, which has no cpuset. It joins before it gets its mask, because older kernels
 * forget the mask on joining. */
static pid_t child_in_root(bool busy, uint64_t mask)
{
    pid_t pid = busy ? child_spin(all) : child_sleep(all);
    char text[16];

    (void)snprintf(text, sizeof(text), "%d", pid);
    assert_int_equal(file_write(text, "/sys/fs/cgroup/cgroup.procs"), 0);
    assert_int_equal(mask_set(pid, mask), 0);
    return pid;
}

static void test_masks(void **state)
{
    uint64_t pair = BIT(victim) | BIT(other);
    pid_t busy, asleep, both, unbound;

    begin();
    busy = child_in_root(true, BIT(victim));
    asleep = child_in_root(false, BIT(victim));
    both = child_in_root(false, pair);
    unbound = child_in_root(false, all);

    set_online(false);
    assert_int_equal(mask_get(busy), all & ~BIT(victim));
    assert_int_equal(mask_get(asleep), 0);
    assert_int_equal(mask_get(both), BIT(other));
    assert_int_equal(mask_get(unbound), all & ~BIT(victim));
    /* status shows the mask that was set, not the CPUs that can be used. */
    assert_int_equal(allowed_list(asleep), BIT(victim));
    assert_int_equal(allowed_list(both), pair);
    assert_int_equal(allowed_list(unbound), all);

    set_online(true);
    assert_int_equal(mask_get(busy), all);
    assert_int_equal(mask_get(asleep), BIT(victim));
    assert_int_equal(mask_get(both), pair);
    assert_int_equal(mask_get(unbound), all);
}

/* An offline CPU may be asked for together with an online one. Older kernels cut it from the mask at once, so
 * the thread does not have it when it is back. */
static void test_asking_meanwhile(void **state)
{
    pid_t pid;

    begin();
    pid = child_in_root(false, all);
    set_online(false);
    assert_int_equal(mask_set(pid, BIT(victim)), -EINVAL);
    assert_int_equal(mask_get(pid), all & ~BIT(victim));
    assert_int_equal(mask_set(pid, BIT(victim) | BIT(other)), 0);
    assert_int_equal(mask_get(pid), BIT(other));
    set_online(true);
    assert_int_equal(mask_get(pid), BIT(other) | (kernel_since(6, 2) ? BIT(victim) : 0));
}

/* The same holds for a mask of all CPUs: only newer kernels include CPUs that come online later. */
static void test_asking_for_all_meanwhile(void **state)
{
    pid_t pid;

    begin();
    pid = child_in_root(false, BIT(other));
    set_online(false);
    assert_int_equal(mask_set(pid, ~UINT64_C(0)), 0);
    assert_int_equal(mask_get(pid), all & ~BIT(victim));
    set_online(true);
    assert_int_equal(mask_get(pid), kernel_since(6, 2) ? all : all & ~BIT(victim));
}

typedef struct Wanted {
    uint64_t effective;
    pid_t pid;
    uint64_t mask;
} Wanted;

static bool is_effective(void *userdata)
{
    return group_list("a", "cpuset.cpus.effective") == ((Wanted *)userdata)->effective;
}

static bool is_mask(void *userdata)
{
    const Wanted *wanted = userdata;

    return mask_get(wanted->pid) == wanted->mask;
}

static void assert_becomes(pid_t pid, uint64_t mask)
{
    Wanted wanted = {.pid = pid, .mask = mask};

    if (!eventually(is_mask, &wanted))
        assert_int_equal(mask_get(pid), mask);
}

/* The effective cpuset loses the CPU some time after the CPU's own file says so, and regains it late, too.
 * The cpuset's own list does not change. */
static void test_cpuset(void **state)
{
    bool remembers = kernel_since(6, 2);
    uint64_t pair = BIT(victim) | BIT(other);
    pid_t unbound, both, one, alone;
    Wanted wanted;

    begin();
    groups_begin();
    group_make("a");
    assert_int_equal(group_write_list("a", "cpuset.cpus", all), 0);
    unbound = child_sleep(all);
    both = child_sleep(pair);
    one = child_sleep(BIT(other));
    alone = child_sleep(all);
    assert_int_equal(group_join("a", alone), 0);
    assert_int_equal(mask_set(alone, BIT(victim)), 0);
    assert_int_equal(group_join("a", unbound), 0);
    assert_int_equal(group_join("a", both), 0);
    assert_int_equal(group_join("a", one), 0);
    assert_int_equal(mask_set(both, pair), 0); /* older kernels have forgotten it by now */
    assert_int_equal(mask_set(one, BIT(other)), 0);

    wanted.effective = all & ~BIT(victim);
    set_online(false);
    assert_true(eventually(is_effective, &wanted));
    assert_int_equal(group_list("a", "cpuset.cpus"), all);
    assert_becomes(unbound, all & ~BIT(victim));
    assert_becomes(both, remembers ? BIT(other) : all & ~BIT(victim));
    assert_becomes(one, remembers ? BIT(other) : all & ~BIT(victim));
    assert_becomes(alone, all & ~BIT(victim));

    wanted.effective = all;
    set_online(true);
    assert_true(eventually(is_effective, &wanted));
    assert_becomes(unbound, all);
    assert_becomes(both, remembers ? pair : all);
    assert_becomes(one, remembers ? BIT(other) : all);
    assert_becomes(alone, remembers ? BIT(victim) : all);
}

static uint64_t idle_ticks(void)
{
    unsigned long long user, nice, system, idle;
    char key[16];
    const char *line;

    (void)snprintf(key, sizeof(key), "\ncpu%u ", victim);
    line = strstr(file_read("/proc/stat"), key);
    assert_non_null(line);
    assert_int_equal(sscanf(line + strlen(key), "%llu %llu %llu %llu", &user, &nice, &system, &idle), 4);
    return idle;
}

/* The idle time of a CPU that was offline continues from its last value. */
static void test_idle_time(void **state)
{
    uint64_t before, after;

    begin();
    before = idle_ticks();
    set_online(false);
    set_online(true);
    after = idle_ticks();
    contract_note("idle ticks: %llu before, %llu after", (unsigned long long)before,
                  (unsigned long long)after);
    assert_true(after >= before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_stays),
        cmocka_unit_test_teardown(test_files, end),
        cmocka_unit_test_teardown(test_masks, end),
        cmocka_unit_test_teardown(test_asking_meanwhile, end),
        cmocka_unit_test_teardown(test_asking_for_all_meanwhile, end),
        cmocka_unit_test_teardown(test_cpuset, end_groups),
        cmocka_unit_test_teardown(test_idle_time, end),
    };

    return cmocka_run_group_tests_name("contract-hotplug", tests, setup, NULL);
}
