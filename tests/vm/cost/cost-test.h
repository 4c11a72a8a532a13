/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the tests of the cost model share: a configuration from a line of text. */

#include "config.h"
#include "unit-test.h"

#define COST_TEST_WORDS_MAX 24

/* Two nodes of 64 MiB with two CPUs each, remote memory at twice the distance. Latencies are 100 and 200 ns, the LLC's
 * is 20, without scaling. Sequential lines are no cheaper, and neither bandwidth nor walks cost anything. */
#define COST_TEST_2X2 \
    "nodes=64:64 cpus=0:0:1:1 dist=10:20/20:10 local=100 remote=200 llclat=20 scale=1 seq=1000 bw=0 walk=0"

/* config_parse() of words separated by blanks, which are stored in `text`. */
static inline int parse_words(char *text, Config *ret, char *error, size_t size)
{
    char *words[COST_TEST_WORDS_MAX], *rest = NULL;
    int n = 0;

    for (char *w = strtok_r(text, " ", &rest); w; w = strtok_r(NULL, " ", &rest)) {
        assert_true(n < COST_TEST_WORDS_MAX);
        words[n++] = w;
    }
    return config_parse(n, words, ret, error, size);
}

/* The same for valid words. The configuration names no output. */
static inline Config config_of(const char *text)
{
    char copy[512], error[256];
    Config c;

    assert_true((size_t)snprintf(copy, sizeof(copy), "%s", text) < sizeof(copy));
    if (parse_words(copy, &c, error, sizeof(error)) < 0)
        fail_msg("%s", error);
    return c;
}
