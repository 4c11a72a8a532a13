/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A policy as a complete file, section by section in the order of the table. */

#include "base/parse.h"
#include "policy/pattern.h"
#include "policy/policy.h"

#include <stdio.h>
#include <string.h>

/* The value of any key; `object` is the Policy or the PolicyMatch. */
static int format_value(const ConfKey *key, const void *object, char **ret)
{
    const void *field = (const char *)object + key->offset;
    int r = conf_key_format(key, object, ret);

    if (r != -EOPNOTSUPP)
        return r;
    assert(key->parse == policy_patterns_parse);
    *ret = policy_patterns_format(field);
    return *ret ? 0 : -ENOMEM;
}

static int print_match(FILE *f, const PolicyMatch *match)
{
    (void)fputs("[Match]\n", f);
    for (size_t i = 0; i < policy_n_match_keys; i++) {
        CLEANUP_FREE char *value = NULL;
        int r = format_value(&policy_keys[i], match, &value);

        if (r < 0)
            return r;
        /* Keys without a condition are omitted: the section is easier to read and means the same. */
        if (strcmp(value, policy_keys[i].fallback) != 0)
            (void)fprintf(f, "%s=%s\n", policy_keys[i].name, value);
    }
    (void)fputc('\n', f);
    return 0;
}

static int print_settings(FILE *f, const Policy *policy)
{
    const char *section = "";

    for (size_t i = policy_n_match_keys; i < policy_n_keys; i++) {
        const ConfKey *key = &policy_keys[i];
        CLEANUP_FREE char *value = NULL;
        int r = format_value(key, policy, &value);

        if (r < 0)
            return r;
        if (key->fixed && !policy_setting_find(policy, key->section, key->name))
            continue;
        if (strcmp(section, key->section) != 0)
            (void)fprintf(f, "%s[%s]\n", *section ? "\n" : "", key->section);
        section = key->section;
        (void)fprintf(f, "%s=%s\n", key->name, value);
    }
    return 0;
}

static int print_policy(FILE *f, const void *object)
{
    const Policy *policy = object;
    int r = 0;

    for (size_t i = 0; r == 0 && i < policy->n_matches; i++)
        r = print_match(f, &policy->matches[i]);
    return r == 0 ? print_settings(f, policy) : r;
}

char *policy_format(const Policy *policy)
{
    return format_printed(print_policy, policy, NULL);
}
