/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* hwloc's parser of synthetic descriptions trusts its input. It creates any number of objects, in time
 * quadratic in those that lie side by side: "pu:8192" takes 18 s, and "012439902pu:2" (an octal number
 * directly followed by another one, so 13 million CPUs) takes hours. It makes bitmaps as long as the highest
 * index: "pu:2(indexes=4294967295,0)" takes 26 s. An assertion ends the program at
 * "indexes=1*65536:1*65536:1*65536:1*65536", whose product is 0 in 64 bits.
 *
 * So the description is first checked here, against an unambiguous grammar:
 *
 *   description  [(attributes)] {level | attached}        blanks and newlines between
 *   level        [type:]number[(attributes)]              number: decimal, 0x hexadecimal, 0 octal
 *   attached     [type[(attributes)]]                     the outer brackets are its own
 *   attributes   memory=SIZE, size=SIZE, indexes=INDEXES  one blank between
 *   indexes      number{,number} | step*count{:step*count} | type{:type}
 *
 * Some texts that hwloc accepts are refused: levels without a blank between them, or with words between them.
 * What the words mean, and whether the order of levels is possible, is left to hwloc. */

#include "topo/build.h"

#include "base/parse.h"
#include "base/scan.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define CPUS_MAX (PARSE_CPU_MAX + 1ULL)

/* hwloc's limit (HWLOC_SYNTHETIC_MAX_DEPTH), which includes the machine itself. */
#define LEVELS_MAX 126U

/* hwloc compares an object with its siblings and with those of its ancestors, one word of a bitmap at a time.
 * 1024 nodes of 8 CPUs need 1,200 million such comparisons and take 1.5 s; 256 nodes of 32 CPUs need 440
 * million. At this limit loading takes half a second or more. */
#define WORK_MAX 536870912ULL

/* More loops than this exceed CPUS_MAX, except for loops of count 1, which have no effect. */
#define LOOPS_MAX 16U

typedef struct Name {
    const char *text;
    size_t len;
} Name;

typedef struct Check {
    const char *text; /* the whole text */
    const char *at;
    char **ret_error;
    Name names[LEVELS_MAX]; /* types of the levels so far, where given */
    uint32_t n_levels, n_names;
    uint64_t n_cpus;    /* objects of the last level */
    uint64_t n_beside;  /* objects that an object of the last level is compared with */
    uint64_t n_compare; /* all comparisons */
    uint64_t n_attached;
    uint64_t index_max;
} Check;

static int expected(const Check *check, const char *what)
{
    const char *quote = *check->at ? "\"" : "";

    return format_error(check->ret_error, -EINVAL,
                        "\"%.200s\" is not a synthetic description: expected %s at %s%.32s%s.", check->text,
                        what, quote, *check->at ? check->at : "its end", quote);
}

static size_t name_length(const char *s)
{
    size_t n = 0;

    while (isalnum((unsigned char)s[n]))
        n++;
    return n;
}

/* Takes a number as hwloc reads it, but without a sign or leading blanks. */
static int take_number(Check *check, uint64_t *ret)
{
    char *end;

    if (!isdigit((unsigned char)*check->at))
        return expected(check, "a number");
    errno = 0;
    *ret = strtoull(check->at, &end, 0);
    if (errno == ERANGE)
        *ret = UINT64_MAX;
    if (isalnum((unsigned char)*end))
        return expected(check, "a number");
    check->at = end;
    return 0;
}

/* Checks "0,2,4". hwloc reads these as decimal whatever their prefix. */
static int check_list(Check *check, size_t len)
{
    for (size_t i = 0; i < len;) {
        uint64_t index = 0;

        for (; i < len && check->at[i] != ','; i++)
            index = MIN(index * 10 + (uint64_t)(check->at[i] - '0'), CPUS_MAX);
        i++;
        if (index > PARSE_CPU_MAX)
            return format_error(check->ret_error, -EINVAL,
                                "The synthetic description lists an index above %u.", PARSE_CPU_MAX);
        check->index_max = MAX(check->index_max, index);
    }
    check->at += len;
    return 0;
}

/* Checks "2*4:1*2". Whether the loops fit the level is left to hwloc, which ignores them if they do not. */
static int check_loops(Check *check)
{
    uint64_t product = 1;

    for (unsigned n = 0;; n++, check->at++) {
        uint64_t step, count;
        int r = take_number(check, &step);

        if (r < 0)
            return r;
        if (!scan_word(&check->at, "*"))
            return expected(check, "'*' and a number");
        r = take_number(check, &count);
        if (r < 0)
            return r;
        product *= MIN(count, CPUS_MAX + 1);
        if (product == 0 || product > CPUS_MAX || step == 0 || step > CPUS_MAX || n >= LOOPS_MAX)
            return format_error(
                check->ret_error, -EINVAL,
                "The loops of indexes= in the synthetic description must have steps of at least 1 and cover "
                "1 to %llu indexes.",
                CPUS_MAX);
        if (*check->at != ':')
            return 0;
    }
}

/* Checks "core:pack". Types of later levels are refused: hwloc would have to count the levels above them, and
 * asserts that it never has to. */
static int check_types(Check *check)
{
    for (;; check->at++) {
        size_t len = name_length(check->at);
        bool found = false;

        for (uint32_t i = 0; len > 0 && i < check->n_names; i++)
            found |= check->names[i].len == len && strncasecmp(check->names[i].text, check->at, len) == 0;
        if (!found)
            return expected(check, "the type of an earlier level");
        check->at += len;
        if (*check->at != ':')
            return 0;
    }
}

static int check_indexes(Check *check)
{
    size_t len = strcspn(check->at, " )");

    if (strspn(check->at, "0123456789,") == len)
        return check_list(check, len);
    return isdigit((unsigned char)*check->at) ? check_loops(check) : check_types(check);
}

/* From after the opening parenthesis to after the closing one. */
static int check_attributes(Check *check)
{
    while (*check->at != ')') {
        int r = 0;

        if (scan_word(&check->at, "indexes="))
            r = check_indexes(check);
        else if (scan_word(&check->at, "memory=") || scan_word(&check->at, "size="))
            check->at += name_length(check->at);
        else
            return expected(check, "memory=, size=, indexes= or ')'");
        if (r < 0)
            return r;
        if (!scan_word(&check->at, " ") && *check->at != ')')
            return expected(check, "a blank or ')'");
    }
    check->at++;
    return 0;
}

static int check_size(const Check *check)
{
    uint64_t words = MAX(check->n_cpus, check->index_max) / 64 + 1;

    if (check->n_cpus > CPUS_MAX)
        return format_error(check->ret_error, -EINVAL,
                            "The synthetic description asks for more than %llu CPUs.", CPUS_MAX);
    if (check->n_attached > NODES_MAX)
        return format_error(check->ret_error, -EINVAL,
                            "The synthetic description asks for more than %u NUMA nodes.", NODES_MAX);
    if (check->n_compare * words > WORK_MAX)
        return format_error(
            check->ret_error, -EINVAL,
            "The synthetic description has too many objects on one level: expected more levels above them, "
            "or fewer CPUs.");
    return 0;
}

/* From after the opening bracket to after the closing one. Attaches a node to each object of the last level. */
static int check_attached(Check *check)
{
    size_t len = name_length(check->at);
    int r = 0;

    if (len == 0)
        return expected(check, "a type");
    check->at += len;
    if (scan_word(&check->at, "("))
        r = check_attributes(check);
    if (r < 0)
        return r;
    if (!scan_word(&check->at, "]"))
        return expected(check, "']'");
    check->n_attached += check->n_cpus;
    check->n_compare += check->n_cpus * check->n_beside;
    return 0;
}

static int check_level(Check *check)
{
    size_t len = isdigit((unsigned char)*check->at) ? 0 : name_length(check->at);
    uint64_t arity;
    int r;

    if (check->n_levels++ >= LEVELS_MAX)
        return format_error(check->ret_error, -EINVAL, "The synthetic description has more than %u levels.",
                            LEVELS_MAX);
    if (len > 0) {
        check->names[check->n_names++] = (Name){check->at, len};
        check->at += len;
        if (!scan_word(&check->at, ":"))
            return expected(check, "':' and a number");
    }
    r = take_number(check, &arity);
    if (r < 0)
        return r;
    arity = MIN(arity, CPUS_MAX + 1);
    check->n_cpus *= arity;
    check->n_beside += arity;
    check->n_compare += check->n_cpus * check->n_beside;
    r = check_size(check);
    if (r == 0 && scan_word(&check->at, "("))
        r = check_attributes(check);
    if (r == 0 && *check->at && !strchr(" \n[", *check->at) && check->at[-1] != ')')
        return expected(check, "a blank");
    return r;
}

int synthetic_check(const char *text, char **ret_error)
{
    Check check = {.text = text, .at = text, .ret_error = ret_error, .n_cpus = 1, .n_beside = 1};
    int r = 0;

    if (scan_word(&check.at, "("))
        r = check_attributes(&check);
    while (r == 0 && *check.at) {
        if (scan_word(&check.at, "["))
            r = check_attached(&check);
        else if (!scan_word(&check.at, " ") && !scan_word(&check.at, "\n"))
            r = check_level(&check);
    }
    return r < 0 ? r : check_size(&check);
}
