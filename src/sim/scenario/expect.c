/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Parses expectations. Names are looked up at once, so that a mistyped one is an error before an hour of runs. */

#include "sim/scenario/expect.h"

#include "base/parse.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *const sim_expect_names[] = {"Value", "Ratio", "Order", "Range", NULL};
const char *const sim_compare_names[] = {"<", "<=", "==", ">=", ">", NULL};

static_assert(ARRAY_SIZE(sim_expect_names) == SIM_EXPECT_MAX + 1, "one name per kind");
static_assert(ARRAY_SIZE(sim_compare_names) == SIM_COMPARE_MAX + 1, "one name per comparison");

#define WORDS_MAX 34U /* a metric, and SIM_TERMS_MAX variants with a sign between them */

typedef struct ExpectParser {
    const SimSpec *spec;
    char *words[WORDS_MAX];
    size_t n_words, next;
    char **error;
} ExpectParser;

/* Sets the error. Returns -EINVAL, or -ENOMEM. */
static int expected(ExpectParser *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int expected(ExpectParser *p, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    *p->error = format_vtext(format, ap);
    va_end(ap);
    return *p->error ? -EINVAL : -ENOMEM;
}

static int find(const char *const *names, const char *name)
{
    for (int i = 0; names[i]; i++)
        if (!strcmp(names[i], name))
            return i;
    return -1;
}

/* The next word. At the end a text for messages, which has blanks and thus is no word. */
static const char *take(ExpectParser *p)
{
    return p->next < p->n_words ? p->words[p->next++] : "the end of the line";
}

static int take_workload(ExpectParser *p, const char *name, SimExpect *e)
{
    for (size_t i = 0; i < p->spec->n_workloads; i++)
        if (!strcmp(p->spec->workloads[i].name, name)) {
            e->workload = i;
            return 0;
        }
    return expected(p, "expected a workload of this scenario in METRIC(WORKLOAD), not: %s", name);
}

/* "METRIC" or "METRIC(WORKLOAD)". */
static int take_metric(ExpectParser *p, SimExpect *e)
{
    const char *word = take(p), *open = strchr(word, '(');
    CLEANUP_FREE char *name = open ? strndup(word, (size_t)(open - word)) : strdup(word);
    CLEANUP_FREE char *workload = NULL;
    size_t n = open ? strlen(open) : 0;
    int metric;

    if (!name)
        return -ENOMEM;
    metric = find(sim_metric_names, name);
    if (metric < 0)
        return expected(p, "expected a metric of numaplace.scenario(5), not: %s", word);
    e->metric = (SimMetric)metric;
    e->workload = SIZE_MAX;
    if (!open)
        return 0;
    if (open[n - 1] != ')' || n == strlen("()"))
        return expected(p, "expected METRIC or METRIC(WORKLOAD), not: %s", word);
    if (sim_metric_is_machine(e->metric))
        return expected(p, "expected no (WORKLOAD) after %s, which is a metric of the machine only", name);
    workload = strndup(open + 1, n - 2);
    return workload ? take_workload(p, workload, e) : -ENOMEM;
}

static int find_variant(ExpectParser *p, const char *name, uint32_t *ret)
{
    for (size_t i = 0; i < p->spec->n_variants; i++)
        if (!strcmp(p->spec->variants[i].name, name)) {
            *ret = (uint32_t)i;
            return 0;
        }
    return expected(p, "expected a variant of this scenario, not: %s", name);
}

static int take_variant(ExpectParser *p, SimExpect *e)
{
    e->divisors[e->n_variants] = UINT32_MAX;
    return find_variant(p, take(p), &e->variants[e->n_variants++]);
}

/* "VARIANT" or "VARIANT/VARIANT". Names contain no slash. */
static int take_term(ExpectParser *p, SimExpect *e)
{
    const char *word = take(p), *slash = strchr(word, '/');
    CLEANUP_FREE char *name = slash ? strndup(word, (size_t)(slash - word)) : strdup(word);
    size_t i = e->n_variants++;
    int r;

    e->divisors[i] = UINT32_MAX;
    if (!name)
        return -ENOMEM;
    if (slash && (slash == word || !slash[1]))
        return expected(p, "expected VARIANT or VARIANT/VARIANT, not: %s", word);
    r = find_variant(p, name, &e->variants[i]);
    return r == 0 && slash ? find_variant(p, slash + 1, &e->divisors[i]) : r;
}

/* The variant may be omitted if there is only one; then a comparison follows. */
static int take_only_variant(ExpectParser *p, SimExpect *e)
{
    if (p->spec->n_variants > 1 || p->next == p->n_words || find(sim_compare_names, p->words[p->next]) < 0)
        return take_variant(p, e);
    e->divisors[0] = UINT32_MAX;
    e->variants[e->n_variants++] = 0;
    return 0;
}

/* Digits with at most one point: no sign, no exponent, nothing that depends on the locale. */
static int take_limit(ExpectParser *p, SimExpect *e)
{
    static const char digits[] = "0123456789";
    const char *op = take(p), *number;
    int compare = find(sim_compare_names, op);
    size_t n, m;

    if (compare < 0)
        return expected(p, "expected <, <=, ==, >= or >, not: %s", op);
    e->compare = (SimCompare)compare;
    number = take(p);
    n = strspn(number, digits);
    m = number[n] == '.' ? strspn(number + n + 1, digits) : 0;
    if (n == 0 || n > 15 || m > 9 || number[n + (number[n] == '.') + m] || (number[n] == '.' && m == 0))
        return expected(p, "expected a number such as 5 or 1.45, not: %s", number);
    e->limit = strtod(number, NULL);
    return 0;
}

static int take_order(ExpectParser *p, SimExpect *e)
{
    int r = take_term(p, e);

    while (r == 0 && (p->next < p->n_words || e->n_variants < 2)) {
        const char *op = take(p);

        if (strcmp(op, "<") != 0)
            return expected(p, "expected < between two variants, not: %s", op);
        if (e->n_variants == SIM_TERMS_MAX)
            return expected(p, "expected at most %u variants", SIM_TERMS_MAX);
        r = take_term(p, e);
    }
    e->compare = SIM_COMPARE_MORE;
    e->limit = 1;
    return r;
}

static int take_kind(ExpectParser *p, SimExpect *e)
{
    int r;

    switch (e->kind) {
    case SIM_EXPECT_ORDER:
        return take_order(p, e);
    case SIM_EXPECT_RATIO:
        r = take_variant(p, e);
        if (r == 0)
            r = take_variant(p, e);
        break;
    default:
        r = take_only_variant(p, e);
        break;
    }
    return r == 0 ? take_limit(p, e) : r;
}

static int split(ExpectParser *p, char *value)
{
    char *save = NULL;

    for (char *w = strtok_r(value, " \t", &save); w; w = strtok_r(NULL, " \t", &save)) {
        if (p->n_words == WORDS_MAX)
            return expected(p, "expected at most %u words", WORDS_MAX);
        p->words[p->n_words++] = w;
    }
    return 0;
}

int sim_expect_parse(const SimSpec *spec, const char *key, const char *value, SimExpect *ret,
                     char **ret_error)
{
    CLEANUP_FREE char *copy = strdup(value), *text = NULL;
    ExpectParser p = {.spec = spec, .error = ret_error};
    SimExpect e = {0};
    int kind = find(sim_expect_names, key), r;

    *ret_error = NULL;
    if (!copy || asprintf(&text, "%s=%s", key, value) < 0) {
        text = NULL;
        return -ENOMEM;
    }
    if (kind < 0)
        return expected(&p, "expected Value=, Ratio=, Order= or Range= in [Expect], not: %s=", key);
    e.kind = (SimExpectKind)kind;
    r = split(&p, copy);
    if (r == 0)
        r = take_metric(&p, &e);
    if (r == 0)
        r = take_kind(&p, &e);
    if (r == 0 && p.next < p.n_words)
        r = expected(&p, "expected the end of the line, not: %s", p.words[p.next]);
    if (r < 0)
        return r;
    e.text = TAKE_PTR(text);
    *ret = e;
    return 0;
}
