/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The daemon sends each reason as a name and as a sentence. This file adds the subject and the numbers, in
 * the form of the daemon's log. */

#include "ctl/sentence.h"

#include "base/human.h"
#include "base/time.h"
#include "plan/plan.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

static uint64_t number(json_object *object, const char *key)
{
    return (uint64_t)view_number(object, key, 0);
}

static PlanRule rule_by_name(const char *name)
{
    for (int i = 0; i < PLAN_RULE_MAX; i++)
        if (!strcmp(plan_rule_name((PlanRule)i), name))
            return (PlanRule)i;
    return PLAN_RULE_INVALID;
}

static PlanReason reason_by_name(const char *name)
{
    for (int i = 0; i < PLAN_REASON_MAX; i++)
        if (!strcmp(plan_reason_name((PlanReason)i), name))
            return (PlanReason)i;
    return PLAN_REASON_INVALID;
}

/* "2026-05-14 12:30:05.250" in local time. */
static void add_clock(ViewText *ret, uint64_t realtime_usec)
{
    time_t seconds = (time_t)(realtime_usec / USEC_PER_SEC);
    struct tm tm;
    char buf[32];

    if (!localtime_r(&seconds, &tm) || strftime(buf, sizeof(buf), "%F %T", &tm) == 0)
        return;
    view_text_add(ret, "%s.%03u ", buf, (unsigned)(realtime_usec % USEC_PER_SEC / USEC_PER_MSEC));
}

/* "java[1234]", "java[1234/1240]" for a thread. */
static void add_subject(ViewText *ret, json_object *object)
{
    int64_t tid = view_number(object, "tid", 0);

    view_text_add(ret, "%s[%" PRId64, view_string(object, "comm"), view_number(object, "pid", 0));
    if (tid > 0)
        view_text_add(ret, "/%" PRId64, tid);
    view_text_add(ret, "]");
}

static bool is_kind(json_object *move, PlanKind kind)
{
    return !strcmp(view_string(move, "kind"), plan_kind_name(kind));
}

static void add_where(ViewText *ret, json_object *move)
{
    bool pushed = is_kind(move, PLAN_KIND_PUSH);
    int64_t cpu = view_number(move, "cpu", -1);
    char buf[64];

    if (cpu >= 0)
        view_text_add(ret, " CPU %" PRId64 " (node %" PRId64 "%s)", cpu, view_number(move, "node", -1),
                      view_bool(move, "cross_node") && !pushed ? ", not its own" : "");
    if (is_kind(move, PLAN_KIND_MOVE_PAGES))
        view_text_add(ret, " memory of nodes %s -> %s", view_string(move, "from_nodes"),
                      view_string(move, "to_nodes"));
    else if (!pushed)
        view_text_add(ret, " %s -> %s", view_string(move, "from"), view_string(move, "to"));
    if (is_kind(move, PLAN_KIND_LEND))
        view_text_add(ret, " for %s",
                      human_span((uint64_t)view_number(move, "lease_usec", 0), buf, sizeof(buf)));
}

void sentence_move(json_object *move, uint64_t now_usec, ViewText *ret)
{
    const char *workload = view_string(move, "workload");
    int64_t count = view_number(move, "count", 1);
    char buf[PLAN_NUMBERS_SIZE];

    add_clock(ret, (uint64_t)view_number(move, "realtime_usec", 0));
    view_text_add(ret, "%-8s %s%s", view_string(move, "kind"), workload, *workload ? ": " : "");
    add_subject(ret, move);
    add_where(ret, move);
    view_text_add(ret, ": %s", view_string(move, "outcome"));
    if (count > 1)
        view_text_add(ret, ", %" PRId64 " times", count);
    view_text_add(ret, ". %s", view_string(move, "text"));
    view_text_add(ret, "%s",
                  plan_rule_numbers(rule_by_name(view_string(move, "rule")), number(move, "mechanism"),
                                    number(move, "value"), number(move, "limit"), buf, sizeof(buf)));
}

/* " for thread 1240 of group 7", " for group 7". */
static void add_refused(ViewText *ret, json_object *refusal)
{
    int64_t pid = view_number(refusal, "pid", 0), tid = view_number(refusal, "tid", 0),
            group = view_number(refusal, "group", 0);

    if (tid > 0)
        view_text_add(ret, " for thread %" PRId64, tid);
    else if (pid > 0)
        view_text_add(ret, " for process %" PRId64, pid);
    if (group > 0)
        view_text_add(ret, " %s group %" PRId64, pid > 0 ? "of" : "for", group);
}

void sentence_refusal(json_object *refusal, uint64_t now_usec, ViewText *ret)
{
    uint64_t time_usec = (uint64_t)view_number(refusal, "time_usec", 0);
    int64_t count = view_number(refusal, "count", 1);
    char buf[PLAN_NUMBERS_SIZE];

    view_text_add(ret, "%s", view_string(refusal, "reason"));
    add_refused(ret, refusal);
    if (count > 1)
        view_text_add(ret, ", %" PRId64 " times", count);
    if (time_usec > 0 && time_usec <= now_usec)
        view_text_add(ret, ", %s ago", human_span(now_usec - time_usec, buf, sizeof(buf)));
    view_text_add(ret, ": %s", view_string(refusal, "text"));
    view_text_add(ret, "%s",
                  plan_reason_numbers(reason_by_name(view_string(refusal, "reason")),
                                      number(refusal, "mechanism"), number(refusal, "value"),
                                      number(refusal, "limit"), buf, sizeof(buf)));
}

void sentence_task(json_object *task, uint64_t now_usec, ViewText *ret)
{
    const char *original = view_string(task, "original"), *hands = view_string(task, "hands");
    int64_t last_cpu = view_number(task, "last_cpu", -1), lent_cpu = view_number(task, "lent_cpu", -1);

    view_text_add(ret, "%" PRId64 " %s: runs %.1f %%, waits %.1f %%, may use CPUs %s",
                  view_number(task, "tid", 0), view_string(task, "comm"),
                  (double)view_number(task, "run_permille", 0) / 10,
                  (double)view_number(task, "wait_permille", 0) / 10, view_string(task, "allowed"));
    if (*original)
        view_text_add(ret, " (%s before)", original);
    if (last_cpu >= 0)
        view_text_add(ret, ", last on CPU %" PRId64 " (node %" PRId64 ")", last_cpu,
                      view_number(task, "node", -1));
    if (lent_cpu >= 0)
        view_text_add(ret, ", lent CPU %" PRId64, lent_cpu);
    if (strcmp(hands, "free") != 0)
        view_text_add(ret, ", left alone: %s", hands);
}

void sentence_lease(json_object *lease, uint64_t now_usec, ViewText *ret)
{
    char age[64], left[64];

    view_text_add(ret, "CPU %" PRId64 " (node %" PRId64 ") to ", view_number(lease, "cpu", -1),
                  view_number(lease, "node", -1));
    add_subject(ret, lease);
    view_text_add(ret, " since %s, for %s at most",
                  human_span((uint64_t)view_number(lease, "age_usec", 0), age, sizeof(age)),
                  human_span((uint64_t)view_number(lease, "left_usec", 0), left, sizeof(left)));
}

CtlExit sentence_print(const char *title, json_object *list, SentenceMaker make)
{
    uint64_t now_usec = time_now_usec();

    if (view_length(list) > 0)
        (void)printf("\n%s:\n", title);
    for (size_t i = 0; i < view_length(list); i++) {
        CLEANUP(view_text_done) ViewText text = {0};

        make(json_object_array_get_idx(list, i), now_usec, &text);
        if (text.failed)
            return ctl_fail_oom();
        view_say(NULL, "  %s\n", text.text);
    }
    return CTL_EXIT_OK;
}
