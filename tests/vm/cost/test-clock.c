/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The clock, with an emulator that does what the test says: which CPU executes, which CPUs are halted, and
 * when the next timer is due. */

#include "clock.h"
#include "emulator.h"
#include "unit-test.h"

#define N_CPUS     3U
#define SLICE_PSEC 1000000
#define WAKE_PSEC  300000

static struct {
    ClockCpu cpus[N_CPUS];
    ClockCpu *all[N_CPUS];
    bool idle[N_CPUS];
    ClockCpu *running;
    int64_t skipped_nsec;
    int64_t timer_nsec; /* -1: none */
    unsigned n_ended;
    EmulatorHooks hooks;
} fake;

const char *emulator_hook(const EmulatorHooks *hooks)
{
    fake.hooks = *hooks;
    return NULL;
}

bool emulator_cpu_idle(void *cpu)
{
    return fake.idle[(ClockCpu *)cpu - fake.cpus];
}

void *emulator_running_cpu(void)
{
    return fake.running;
}

void emulator_end_turn(void *cpu)
{
    assert_ptr_equal(cpu, fake.running);
    fake.n_ended++;
}

int64_t emulator_skipped_nsec(void)
{
    return fake.skipped_nsec;
}

int64_t emulator_deadline_nsec(void)
{
    int64_t now_nsec = fake.hooks.clock();

    if (fake.timer_nsec < 0)
        return -1;
    return fake.timer_nsec > now_nsec ? fake.timer_nsec - now_nsec : 0;
}

bool emulator_locked(void)
{
    return true;
}

static int setup(void **state)
{
    fake.running = NULL;
    fake.skipped_nsec = 0;
    fake.timer_nsec = -1;
    fake.n_ended = 0;
    for (unsigned i = 0; i < N_CPUS; i++) {
        fake.cpus[i] = (ClockCpu){.cpu = &fake.cpus[i]};
        fake.all[i] = &fake.cpus[i];
        fake.idle[i] = false;
    }
    assert_null(clock_start(fake.all, N_CPUS, SLICE_PSEC, WAKE_PSEC));
    return 0;
}

/* Reads the clock, as QEMU does between two rounds. Returns nanoseconds. */
static int64_t ask(void)
{
    return fake.hooks.clock();
}

/* Gives a CPU a turn in which it takes `psec`, if it may run. */
static bool turn(unsigned cpu, int64_t psec)
{
    if (!fake.hooks.may_run(&fake.cpus[cpu]))
        return false;
    fake.running = &fake.cpus[cpu];
    clock_take(fake.running, psec);
    fake.running = NULL;
    return true;
}

static void test_side_by_side(void **state)
{
    for (unsigned i = 0; i < N_CPUS; i++)
        (void)turn(i, 0);
    assert_int_equal(ask(), 0);
    /* Each has the slice for itself, and exceeds its end by an instruction. */
    for (unsigned i = 0; i < N_CPUS; i++)
        assert_true(turn(i, SLICE_PSEC + i * 1000));
    assert_int_equal(fake.n_ended, N_CPUS);
    assert_int_equal(clock_cpu_psec(&fake.cpus[2]), SLICE_PSEC + 2000);
    /* The clock is that of the CPU furthest behind. */
    assert_int_equal(ask(), 1000);
    assert_true(turn(0, 100000));
    assert_true(turn(1, 500000));
    assert_true(turn(2, SLICE_PSEC));
    assert_int_equal(ask(), 1100);
    /* A CPU at the end of the slice waits for the others. */
    assert_true(turn(0, 0));
    assert_int_equal(ask(), 1100);
    assert_true(turn(2, 100000));
    assert_int_equal(ask(), 1100);
    assert_false(turn(2, 1));
}

static void test_reads_its_own(void **state)
{
    (void)turn(0, 0);
    (void)ask();
    assert_true(fake.hooks.may_run(&fake.cpus[1]));
    fake.running = &fake.cpus[1];
    clock_take(fake.running, 700000);
    assert_int_equal(ask(), 700);
    fake.running = NULL;
    assert_int_equal(clock_now_psec() / 1000, 0);
}

/* A timer is never passed: the slice and the clock stop there. */
static void test_timers(void **state)
{
    fake.timer_nsec = 250;
    (void)turn(0, 0);
    assert_int_equal(ask(), 0);
    for (unsigned i = 0; i < N_CPUS; i++) {
        assert_int_equal(fake.cpus[i].left_psec, 250000);
        assert_true(turn(i, 260000));
    }
    assert_int_equal(ask(), 250);
    fake.timer_nsec = -1;
    assert_false(turn(0, 1));
    assert_int_equal(ask(), 260);
}

static void test_wakes(void **state)
{
    fake.idle[1] = true;
    (void)turn(0, 0);
    (void)ask();
    assert_true(fake.hooks.may_run(&fake.cpus[0]));
    fake.running = &fake.cpus[0];
    clock_take(fake.running, 600000);
    fake.hooks.interrupted(&fake.cpus[1]);
    assert_int_equal(clock_cpu_psec(&fake.cpus[1]), 600000 + WAKE_PSEC);
    assert_int_equal(fake.cpus[1].wakes, 1);
    /* A CPU that is awake loses nothing. */
    fake.hooks.interrupted(&fake.cpus[2]);
    assert_int_equal(clock_cpu_psec(&fake.cpus[2]), 0);
}

/* No CPU executes: the time to the next timer is skipped, and a CPU that wakes then has its time advanced, too. */
static void test_skips(void **state)
{
    for (unsigned i = 0; i < N_CPUS; i++)
        fake.idle[i] = true;
    fake.hooks.may_run(&fake.cpus[0]);
    assert_int_equal(ask(), 0);
    fake.skipped_nsec += 5000;
    assert_int_equal(ask(), 5000);
    fake.hooks.interrupted(&fake.cpus[2]);
    assert_int_equal(clock_cpu_psec(&fake.cpus[2]), 5000000 + WAKE_PSEC);
    fake.idle[1] = false;
    fake.hooks.may_run(&fake.cpus[0]);
    assert_int_equal(ask(), 5000);
    assert_int_equal(clock_cpu_psec(&fake.cpus[1]), 5000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_side_by_side, setup), cmocka_unit_test_setup(test_reads_its_own, setup),
        cmocka_unit_test_setup(test_timers, setup),       cmocka_unit_test_setup(test_wakes, setup),
        cmocka_unit_test_setup(test_skips, setup),
    };

    return cmocka_run_group_tests_name("cost-clock", tests, NULL, NULL);
}
