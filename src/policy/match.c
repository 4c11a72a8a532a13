/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Matching. fnmatch() is used without flags, so `*` also matches slashes and leading dots, for all keys alike: most
 * subjects are not paths, and the path of a cgroup followed by slash and star is then its whole subtree.
 *
 * Facts that are fixed while a process keeps its program and cgroup are checked before the Min...= keys. Only those
 * keys make the difference between NO and LATER: between forgetting a process and checking it again. */

#include "policy/pattern.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

void policy_match_done(PolicyMatch *match)
{
    policy_patterns_done(&match->unit);
    policy_patterns_done(&match->slice);
    policy_patterns_done(&match->cgroup);
    policy_patterns_done(&match->comm);
    policy_patterns_done(&match->exe);
    policy_patterns_done(&match->command_line);
    policy_patterns_done(&match->user);
    policy_patterns_done(&match->environment);
    *match = (PolicyMatch){0};
}

bool policy_match_empty(const PolicyMatch *match)
{
    return !match->unit.n_values && !match->slice.n_values && !match->cgroup.n_values &&
           !match->comm.n_values && !match->exe.n_values && !match->command_line.n_values &&
           !match->user.n_values && !match->environment.n_values && !match->min_memory_bytes &&
           !match->min_cpu_permille && !match->min_threads;
}

typedef bool (*Hit)(const char *glob, const PolicySubject *subject, const char *text);

/* OR over the plain values, AND NOT over the negated ones. With only negated values, everything else matches. */
static bool values_match(const PolicyPatterns *patterns, Hit hit, const PolicySubject *subject,
                         const char *text)
{
    bool wanted = false, found = false;

    for (size_t i = 0; i < patterns->n_values; i++) {
        bool hits = hit(patterns->values[i].glob, subject, text);

        if (patterns->values[i].negate && hits)
            return false;
        if (!patterns->values[i].negate) {
            wanted = true;
            found = found || hits;
        }
    }
    return found || !wanted;
}

static bool hit_text(const char *glob, const PolicySubject *subject, const char *text)
{
    return fnmatch(glob, text, 0) == 0;
}

static bool match_text(const PolicyPatterns *patterns, const PolicySubject *subject, const char *text)
{
    return patterns->n_values == 0 || (text && values_match(patterns, hit_text, subject, text));
}

static bool hit_user(const char *glob, const PolicySubject *subject, const char *uid)
{
    return fnmatch(glob, uid, 0) == 0 || (subject->user && fnmatch(glob, subject->user, 0) == 0);
}

static bool match_user(const PolicyPatterns *patterns, const PolicySubject *subject)
{
    char uid[16];

    if (patterns->n_values == 0)
        return true;
    /* An unknown name may be an excluded one; a number is always known. */
    for (size_t i = 0; i < patterns->n_values && !subject->user; i++)
        if (patterns->values[i].negate && strspn(patterns->values[i].glob, "0123456789") == 0)
            return false;
    (void)snprintf(uid, sizeof(uid), "%" PRIu32, (uint32_t)subject->uid);
    return values_match(patterns, hit_user, subject, uid);
}

/* A glob without "=" applies to the name of a variable, any other to the whole assignment. */
static bool hit_environment(const char *glob, const PolicySubject *subject, const char *text)
{
    const char *end = text + subject->environment_len;
    bool whole = strchr(glob, '=') != NULL;

    while (text < end) {
        CLEANUP_FREE char *one = strndup(text, (size_t)(end - text));
        size_t n;

        if (!one)
            return false;
        n = strlen(one);
        if (!whole)
            one[strcspn(one, "=")] = '\0';
        if (n > 0 && fnmatch(glob, one, 0) == 0)
            return true;
        text += n + 1;
    }
    return false;
}

static bool match_environment(const PolicyPatterns *patterns, const PolicySubject *subject)
{
    return patterns->n_values == 0 ||
           (subject->environment && values_match(patterns, hit_environment, subject, subject->environment));
}

static PolicyVerdict match_section(const PolicyMatch *m, const PolicySubject *s)
{
    if (!match_text(&m->unit, s, s->unit) || !match_text(&m->slice, s, s->slice) ||
        !match_text(&m->cgroup, s, s->cgroup) || !match_text(&m->comm, s, s->comm) ||
        !match_user(&m->user, s) || !match_text(&m->exe, s, s->exe) ||
        !match_text(&m->command_line, s, s->command_line) || !match_environment(&m->environment, s))
        return POLICY_VERDICT_NO;
    if (s->memory_bytes < m->min_memory_bytes || s->cpu_permille < m->min_cpu_permille ||
        s->n_threads < m->min_threads)
        return POLICY_VERDICT_LATER;
    return POLICY_VERDICT_YES;
}

static PolicyVerdict match_one(const Policy *policy, const PolicySubject *subject, size_t *ret_section)
{
    PolicyVerdict best = POLICY_VERDICT_NO;

    *ret_section = SIZE_MAX;
    for (size_t i = 0; i < policy->n_matches && best != POLICY_VERDICT_YES; i++) {
        PolicyVerdict verdict = match_section(&policy->matches[i], subject);

        if (verdict > best) {
            best = verdict;
            *ret_section = i;
        }
    }
    return best;
}

static PolicyVerdict match_set(const PolicySet *set, const PolicySubject *subject, size_t *ret_index)
{
    bool later = false;

    *ret_index = SIZE_MAX;
    for (size_t i = 0; i < set->n_policies; i++) {
        size_t section;
        PolicyVerdict verdict = match_one(set->policies[i], subject, &section);

        if (verdict == POLICY_VERDICT_YES) {
            *ret_index = i;
            return later ? POLICY_VERDICT_LATER : POLICY_VERDICT_YES;
        }
        later = later || verdict == POLICY_VERDICT_LATER;
    }
    return later ? POLICY_VERDICT_LATER : POLICY_VERDICT_NO;
}

/* The daemon has no locale. In one of UTF-8, fnmatch() takes a character of several bytes for one. */
typedef struct Bytes {
    locale_t own, before;
} Bytes;

static Bytes bytes_begin(void)
{
    locale_t own = newlocale(LC_CTYPE_MASK, "C", (locale_t)0);

    return (Bytes){own, uselocale(own)};
}

static void bytes_end(Bytes bytes)
{
    (void)uselocale(bytes.before);
    if (bytes.own)
        freelocale(bytes.own);
}

PolicyVerdict policy_match_one(const Policy *policy, const PolicySubject *subject, size_t *ret_section)
{
    Bytes bytes = bytes_begin();
    PolicyVerdict verdict = match_one(policy, subject, ret_section);

    bytes_end(bytes);
    return verdict;
}

PolicyVerdict policy_match(const PolicySet *set, const PolicySubject *subject, size_t *ret_index)
{
    Bytes bytes = bytes_begin();
    PolicyVerdict verdict = match_set(set, subject, ret_index);

    bytes_end(bytes);
    return verdict;
}
