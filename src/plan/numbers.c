/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Formats value and limit in the unit of the rule or reason. The daemon's log and numaplacectl both print
 * them, and must not differ. */

#include "base/human.h"
#include "base/time.h"
#include "plan/plan.h"

#include <inttypes.h>
#include <stdio.h>

typedef enum Unit {
    UNIT_PLAIN,
    UNIT_PERMILLE,
    UNIT_USEC,
    UNIT_MSEC,
    UNIT_BYTES,
    UNIT_MIB,
} Unit;

static const Unit rule_units[PLAN_RULE_MAX] = {
    [PLAN_RULE_IDLE_NEARBY] = UNIT_PERMILLE, [PLAN_RULE_OWNER_WAITS] = UNIT_PERMILLE,
    [PLAN_RULE_IDLE_CORE] = UNIT_PERMILLE,   [PLAN_RULE_LEASE_ENDED] = UNIT_MSEC,
    [PLAN_RULE_DEMAND_FELL] = UNIT_PERMILLE, [PLAN_RULE_FOLLOW_HOME] = UNIT_MIB,
    [PLAN_RULE_INTERLEAVE] = UNIT_MIB,       [PLAN_RULE_EVEN_OUT] = UNIT_MIB,
    [PLAN_RULE_FOLLOW_PIN] = UNIT_MIB,       [PLAN_RULE_GO_BACK] = UNIT_MIB,
    [PLAN_RULE_FOLLOW_USE] = UNIT_MIB,
};

static const Unit reason_units[PLAN_REASON_MAX] = {
    [PLAN_REASON_TOO_YOUNG] = UNIT_USEC,       [PLAN_REASON_NOT_OVERLOADED] = UNIT_PERMILLE,
    [PLAN_REASON_NO_IDLE_CPU] = UNIT_PERMILLE, [PLAN_REASON_HOME_HAS_IDLE] = UNIT_PERMILLE,
    [PLAN_REASON_IDLE_TOO_SHORT] = UNIT_USEC,  [PLAN_REASON_RESIDENCY] = UNIT_USEC,
    [PLAN_REASON_EVIDENCE] = UNIT_USEC,        [PLAN_REASON_MEMORY_NEAR] = UNIT_BYTES,
    [PLAN_REASON_HEADROOM] = UNIT_BYTES,       [PLAN_REASON_MEMORY_PRESSURE] = UNIT_PERMILLE,
    [PLAN_REASON_RATE_MEMORY] = UNIT_BYTES,    [PLAN_REASON_MEMORY_EVEN] = UNIT_BYTES,
    [PLAN_REASON_FITS_NODE] = UNIT_PERMILLE,   [PLAN_REASON_MEMORY_BOUND] = UNIT_BYTES,
    [PLAN_REASON_SETTLING] = UNIT_USEC,        [PLAN_REASON_TO_AND_FRO] = UNIT_USEC,
    [PLAN_REASON_MEMORY_MOVING] = UNIT_BYTES,  [PLAN_REASON_CONVERGED] = UNIT_PERMILLE,
    [PLAN_REASON_POOLED] = UNIT_PERMILLE,      [PLAN_REASON_BANDWIDTH] = UNIT_BYTES,
    [PLAN_REASON_IDLE] = UNIT_PERMILLE,        [PLAN_REASON_NO_HOME] = UNIT_PERMILLE,
    [PLAN_REASON_UNSETTLED] = UNIT_USEC,       [PLAN_REASON_STEAL_OFF] = UNIT_PERMILLE,
    [PLAN_REASON_UNREADABLE] = UNIT_PERMILLE,
};

/* Whether its value was compared with nothing. */
static bool has_no_limit(PlanReason reason)
{
    return reason == PLAN_REASON_NO_HOME || reason == PLAN_REASON_TO_AND_FRO || reason == PLAN_REASON_SLOWER;
}

static const char *format_number(uint64_t number, Unit unit, char *buf, size_t size)
{
    switch (unit) {
    case UNIT_PERMILLE:
        (void)snprintf(buf, size, "%.1f %%", (double)number / 10);
        return buf;
    case UNIT_USEC:
        return human_span(number, buf, size);
    case UNIT_MSEC:
        return human_span(number * USEC_PER_MSEC, buf, size);
    case UNIT_BYTES:
        return human_bytes(number, buf, size);
    case UNIT_MIB:
        return human_bytes(number << 20, buf, size);
    default:
        (void)snprintf(buf, size, "%" PRIu64, number);
        return buf;
    }
}

static char *format_numbers(Unit unit, uint64_t mechanism, uint64_t value, const uint64_t *limit, char *buf,
                            size_t size)
{
    const char *name = plan_mechanism_name(mechanism);
    char p[48] = "", v[32], l[32];

    *buf = '\0';
    if (mechanism > 0)
        (void)snprintf(p, sizeof(p), "P%" PRIu64 "%s%s", mechanism, name ? " " : "", name ? name : "");
    if (value > 0 || (limit && *limit > 0))
        (void)snprintf(buf, size, " (%s%s%s%s%s)", p, *p ? ", " : "",
                       format_number(value, unit, v, sizeof(v)), limit ? " against " : "",
                       limit ? format_number(*limit, unit, l, sizeof(l)) : "");
    else if (*p)
        (void)snprintf(buf, size, " (%s)", p);
    return buf;
}

char *plan_rule_numbers(PlanRule rule, uint64_t mechanism, uint64_t value, uint64_t limit, char *buf,
                        size_t size)
{
    Unit unit = rule >= 0 && rule < PLAN_RULE_MAX ? rule_units[rule] : UNIT_PLAIN;

    /* What moves to its users was compared with nothing. */
    return format_numbers(unit, mechanism, value, rule == PLAN_RULE_FOLLOW_USE ? NULL : &limit, buf, size);
}

char *plan_reason_numbers(PlanReason reason, uint64_t mechanism, uint64_t value, uint64_t limit, char *buf,
                          size_t size)
{
    Unit unit = reason >= 0 && reason < PLAN_REASON_MAX ? reason_units[reason] : UNIT_PLAIN;

    return format_numbers(unit, mechanism, value, has_no_limit(reason) ? NULL : &limit, buf, size);
}
