/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The daemon's own cost is limited by solving for the interval instead of steering towards it. With a mean cost Cf of a
 * fast tick, Cs added by a slow tick, and wanted intervals If and Is, the share is Cf/If + Cs/Is, and stretching both
 * by share / MaxCPU gives MaxCPU exactly. A controller that nudged the interval until the measured share fits would
 * oscillate, because each cost is seen only once per interval.
 *
 * Savings relax this limit. What MaxCPU= allowed and was not used is saved. With half a minute's worth or more there is
 * no stretch; below that it grows to the full stretch as savings shrink.
 *
 * Example: a fast tick costs 2 ms, a slow one 5 ms more; 100 ms and 1 s are wanted: 2/100 + 5/1000 = 25 permille. With
 * MaxCPU=1% (10 permille) the factor is 2.5: 250 ms and 2.5 s. */

#include "daemon/pace.h"

#include "base/time.h"
#include "base/util.h"

/* The time that averages of recent ticks cover. */
#define LATELY_USEC (10 * USEC_PER_SEC)

static uint64_t mean(uint64_t old, uint64_t sample)
{
    return old ? old - old / 8 + sample / 8 : sample;
}

/* Shortens the interval while there is something new to watch. */
static uint64_t or_new(const Pace *pace, uint64_t wish_usec)
{
    bool is_new = pace->settings.watches && pace->last_fast_usec < pace->new_until_usec;

    return is_new ? MIN(wish_usec, pace->new_usec) : wish_usec;
}

/* Share in millionths of one CPU at the unstretched intervals; nsec per usec is a thousandth. */
static uint64_t share_ppm(const Pace *pace)
{
    return pace->fast_cost_nsec * 1000 / or_new(pace, pace->fast_wish_usec) +
           pace->slow_cost_nsec * 1000 / or_new(pace, pace->slow_wish_usec);
}

static uint64_t stretch(const Pace *pace, uint64_t usec)
{
    uint64_t stretched = usec * pace->stretch_permille / 1000;

    return MAX(usec, MIN(stretched, PACE_STRETCH_MAX_USEC));
}

/* Each usec allows as many nsec of CPU time as MaxCPU= has permille. */
static int64_t savings_max(const Pace *pace)
{
    uint64_t usec = pace->settings.watches ? PACE_WATCH_SAVING_USEC : PACE_SAVING_USEC;

    return (int64_t)(usec * pace->settings.max_cpu_permille);
}

bool pace_has_savings(const Pace *pace)
{
    return pace->saved_nsec > savings_max(pace) / 2;
}

void pace_pay(Pace *pace, uint64_t cost_nsec)
{
    int64_t most = savings_max(pace), saved = pace->saved_nsec - (int64_t)MIN(cost_nsec, (uint64_t)most);

    pace->saved_nsec = MAX(saved, -most / 10);
}

static void save(Pace *pace, uint64_t now_usec, uint64_t cost_nsec)
{
    uint64_t since = pace->last_fast_usec > 0 ? MIN(pace->last_fast_usec, now_usec) : now_usec;
    uint64_t elapsed = MIN(now_usec - since, PACE_SAVING_USEC); /* the longest interval between ticks */
    int64_t saved = pace->saved_nsec + (int64_t)(elapsed * pace->settings.max_cpu_permille);

    pace->saved_nsec = MIN(saved, savings_max(pace));
    pace_pay(pace, cost_nsec);
}

static void update_stretch(Pace *pace)
{
    uint64_t limit_ppm = (uint64_t)pace->settings.max_cpu_permille * 1000, share = share_ppm(pace), whole;
    int64_t half = savings_max(pace) / 2;

    pace->stretch_permille = 1000;
    if (!limit_ppm || share <= limit_ppm || pace_has_savings(pace))
        return;
    whole = MIN((share * 1000 + limit_ppm - 1) / limit_ppm, (uint64_t)UINT32_MAX / 4);
    pace->stretch_permille +=
        (uint32_t)((double)(whole - 1000) * (double)(half - pace->saved_nsec) / (double)half);
}

static void update_due(Pace *pace)
{
    uint64_t fast = pace->last_fast_usec + pace_fast_usec(pace);
    uint64_t slow = pace->last_slow_usec + pace_slow_usec(pace);

    if (pace->unfinished)
        fast = pace->last_fast_usec + pace->step_usec;
    pace->due_usec = MIN(fast, slow);
}

void pace_init(Pace *pace, const PaceSettings *settings)
{
    *pace = (Pace){.stretch_permille = 1000};
    pace_set(pace, settings);
    pace->saved_nsec = savings_max(pace);
}

void pace_set(Pace *pace, const PaceSettings *settings)
{
    uint32_t permille = settings->max_cpu_permille;

    assert(settings->fast_usec > 0 && settings->slow_usec > 0);
    pace->settings = *settings;
    pace->step_usec = settings->fast_usec;
    pace->new_usec = settings->slow_usec;
    if (settings->watches)
        pace->settings = (PaceSettings){
            .fast_usec = MAX(settings->fast_usec, PACE_WATCH_USEC),
            .slow_usec = MAX(settings->slow_usec, PACE_WATCH_USEC),
            .max_cpu_permille = permille > 0 ? MIN(permille, PACE_WATCH_PERMILLE) : PACE_WATCH_PERMILLE,
            .watches = true,
        };
    pace->fast_wish_usec = pace->settings.fast_usec;
    pace->slow_wish_usec = pace->settings.slow_usec;
    pace->saved_nsec = MIN(pace->saved_nsec, savings_max(pace));
    update_stretch(pace);
    update_due(pace);
}

uint64_t pace_fast_usec(const Pace *pace)
{
    return stretch(pace, or_new(pace, pace->fast_wish_usec));
}

uint64_t pace_slow_usec(const Pace *pace)
{
    return stretch(pace, or_new(pace, pace->slow_wish_usec));
}

uint32_t pace_cost_permille(const Pace *pace)
{
    return (uint32_t)((pace->lately_ppm + 999) / 1000);
}

uint64_t pace_lately_usec(const Pace *pace)
{
    return pace->lately_usec > 0 ? pace->lately_usec : pace_fast_usec(pace);
}

bool pace_slow_due(const Pace *pace, uint64_t now_usec)
{
    if (!pace->last_slow_usec)
        return true;
    return now_usec + pace_fast_usec(pace) / 2 >= pace->last_slow_usec + pace_slow_usec(pace);
}

bool pace_may_discover(const Pace *pace, uint64_t now_usec)
{
    uint64_t limit_ppm = (uint64_t)pace->settings.max_cpu_permille * 1000,
             wait = pace->settings.slow_usec / PACE_DISCOVERIES;

    if (pace->settings.watches)
        return false;
    /* In the unit of share_ppm(). Fast ticks do not count: new processes must not wait for the cost of others. */
    if (limit_ppm > 0 && !pace_has_savings(pace))
        wait = CLAMP(pace->find_cost_nsec * 1000 / limit_ppm, wait, pace->settings.slow_usec);
    return now_usec >= pace->last_discovery_usec + wait;
}

bool pace_may_tick(const Pace *pace, uint64_t now_usec)
{
    return now_usec >= pace->last_fast_usec + stretch(pace, pace->settings.fast_usec);
}

/* Doubles up to the idle maximum, but never goes below what was configured. */
static uint64_t back_off(uint64_t wish, uint64_t setting)
{
    return MAX(setting, MIN(wish * 2, PACE_IDLE_MAX_USEC));
}

/* A moving mean over LATELY_USEC, however many ticks that is. */
static uint64_t towards(uint64_t mean, uint64_t sample, uint64_t elapsed_usec)
{
    return (mean * LATELY_USEC + sample * elapsed_usec) / (LATELY_USEC + elapsed_usec);
}

/* Spreads the cost of a tick over the time since the previous one. */
static void note_lately(Pace *pace, uint64_t now_usec, uint64_t cost_nsec)
{
    uint64_t elapsed = now_usec - MIN(pace->last_fast_usec, now_usec);

    if (pace->last_fast_usec == 0 || elapsed == 0)
        return;
    pace->lately_ppm = towards(pace->lately_ppm, cost_nsec * 1000 / elapsed, elapsed);
    pace->lately_usec = pace->lately_usec > 0 ? towards(pace->lately_usec, elapsed, elapsed) : elapsed;
}

void pace_ticked(Pace *pace, uint64_t now_usec, bool slow, PacePress press, bool idle, uint64_t fast_nsec,
                 uint64_t slow_nsec)
{
    bool hurries = press == PACE_PRESSED || (press == PACE_FULL && pace->press == PACE_CALM);

    pace->press = press;
    note_lately(pace, now_usec, fast_nsec + slow_nsec);
    if (pace->last_fast_usec == 0)
        pace->new_until_usec = now_usec + PACE_WATCH_NEW_USEC;
    save(pace, now_usec, fast_nsec + slow_nsec);
    pace->last_fast_usec = now_usec;
    pace->fast_cost_nsec = mean(pace->fast_cost_nsec, fast_nsec);
    if (slow || slow_nsec > 0)
        pace->last_discovery_usec = now_usec;
    if (!slow && slow_nsec > 0)
        pace->find_cost_nsec = mean(pace->find_cost_nsec, slow_nsec);
    if (slow) {
        pace->slow_cost_nsec = mean(pace->slow_cost_nsec, slow_nsec);
        pace->last_slow_usec = now_usec;
        pace->slow_wish_usec =
            idle ? back_off(pace->slow_wish_usec, pace->settings.slow_usec) : pace->settings.slow_usec;
    }
    pace->fast_wish_usec =
        hurries ? pace->settings.fast_usec : back_off(pace->fast_wish_usec, pace->settings.fast_usec);
    update_stretch(pace);
    update_due(pace);
}

void pace_wake(Pace *pace)
{
    pace->fast_wish_usec = pace->settings.fast_usec;
    update_stretch(pace);
    update_due(pace);
}

void pace_members_changed(Pace *pace)
{
    pace->slow_wish_usec = pace->settings.slow_usec;
    pace->new_until_usec = pace->last_fast_usec + PACE_WATCH_NEW_USEC;
    update_stretch(pace);
    update_due(pace);
}

void pace_unfinished(Pace *pace, bool unfinished)
{
    pace->unfinished = unfinished;
    update_due(pace);
}

void pace_now(Pace *pace, uint64_t now_usec)
{
    pace->last_slow_usec = 0;
    pace->due_usec = now_usec;
}
