/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The daemon's own cost is bounded by solving for the interval instead of steering towards it: with a mean
 * cost Cf of a fast tick, Cs of what a slow tick adds, and the intervals If and Is one would like, the share
 * is Cf/If + Cs/Is, and stretching both by share / MaxCPU brings it to MaxCPU exactly. A controller that
 * nudged the interval until the measured share fits would swing, because each cost is seen only once per
 * interval.
 *
 * Example: a fast tick costs 2 ms, a slow one 5 ms more; 100 ms and 1 s are wanted: 2/100 + 5/1000 = 25
 * permille. With MaxCPU=1% (10 permille) the factor is 2.5: 250 ms and 2.5 s. */

#include "daemon/pace.h"

#include "base/time.h"
#include "base/util.h"

static uint64_t mean(uint64_t old, uint64_t sample)
{
    return old ? old - old / 8 + sample / 8 : sample;
}

/* Share in millionths of one CPU at the unstretched intervals; nsec per usec is a thousandth. */
static uint64_t share_ppm(const Pace *pace)
{
    return pace->fast_cost_nsec * 1000 / pace->fast_wish_usec +
           pace->slow_cost_nsec * 1000 / pace->slow_wish_usec;
}

static uint64_t stretch(const Pace *pace, uint64_t usec)
{
    uint64_t stretched = usec * pace->stretch_permille / 1000;

    return MAX(usec, MIN(stretched, PACE_STRETCH_MAX_USEC));
}

static void update_stretch(Pace *pace)
{
    uint64_t limit_ppm = (uint64_t)pace->settings.max_cpu_permille * 1000;
    uint64_t share = share_ppm(pace);

    if (!limit_ppm || share <= limit_ppm)
        pace->stretch_permille = 1000;
    else
        pace->stretch_permille =
            (uint32_t)MIN((share * 1000 + limit_ppm - 1) / limit_ppm, (uint64_t)UINT32_MAX);
}

static void update_due(Pace *pace)
{
    uint64_t fast = pace->last_fast_usec + pace_fast_usec(pace);
    uint64_t slow = pace->last_slow_usec + pace_slow_usec(pace);

    pace->due_usec = MIN(fast, slow);
}

void pace_init(Pace *pace, const PaceSettings *settings)
{
    *pace = (Pace){.stretch_permille = 1000};
    pace_set(pace, settings);
}

void pace_set(Pace *pace, const PaceSettings *settings)
{
    assert(settings->fast_usec > 0 && settings->slow_usec > 0);
    pace->settings = *settings;
    pace->fast_wish_usec = settings->fast_usec;
    pace->slow_wish_usec = settings->slow_usec;
    update_stretch(pace);
    update_due(pace);
}

uint64_t pace_fast_usec(const Pace *pace)
{
    return stretch(pace, pace->fast_wish_usec);
}

uint64_t pace_slow_usec(const Pace *pace)
{
    return stretch(pace, pace->slow_wish_usec);
}

uint32_t pace_cost_permille(const Pace *pace)
{
    uint64_t ppm = share_ppm(pace) * 1000 / pace->stretch_permille;

    return (uint32_t)((ppm + 999) / 1000);
}

bool pace_slow_due(const Pace *pace, uint64_t now_usec)
{
    if (!pace->last_slow_usec)
        return true;
    return now_usec + pace_fast_usec(pace) / 2 >= pace->last_slow_usec + pace_slow_usec(pace);
}

/* Doubles up to the idle maximum, but never goes below what was configured. */
static uint64_t back_off(uint64_t wish, uint64_t setting)
{
    return MAX(setting, MIN(wish * 2, PACE_IDLE_MAX_USEC));
}

void pace_ticked(Pace *pace, uint64_t now_usec, bool slow, bool pressed, bool asleep, uint64_t fast_nsec,
                 uint64_t slow_nsec)
{
    pace->last_fast_usec = now_usec;
    pace->fast_cost_nsec = mean(pace->fast_cost_nsec, fast_nsec);
    if (slow) {
        pace->last_slow_usec = now_usec;
        pace->slow_cost_nsec = mean(pace->slow_cost_nsec, slow_nsec);
        pace->slow_wish_usec =
            asleep ? back_off(pace->slow_wish_usec, pace->settings.slow_usec) : pace->settings.slow_usec;
    }
    pace->fast_wish_usec =
        pressed ? pace->settings.fast_usec : back_off(pace->fast_wish_usec, pace->settings.fast_usec);
    update_stretch(pace);
    update_due(pace);
}

void pace_wake(Pace *pace)
{
    pace->fast_wish_usec = pace->settings.fast_usec;
    update_stretch(pace);
    update_due(pace);
}

void pace_now(Pace *pace, uint64_t now_usec)
{
    pace->last_slow_usec = 0;
    pace->due_usec = now_usec;
}
