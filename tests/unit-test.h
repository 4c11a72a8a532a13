/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* cmocka with the headers that it needs before it, and those that nearly every test uses. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* The main() of a test: runs these functions in this order, each with `setup` before it and `teardown` after it, which
 * may be NULL. What is left out is an unused function, which the compiler reports. */
#define TEST_MAIN(setup, teardown, ...)                                                     \
    int main(void)                                                                          \
    {                                                                                       \
        static const CMUnitTestFunction test_functions[] = {__VA_ARGS__};                   \
        struct CMUnitTest tests[sizeof(test_functions) / sizeof(test_functions[0])];        \
        char test_names[] = #__VA_ARGS__, *test_next = test_names;                          \
                                                                                            \
        for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {                     \
            const char *name = strtok_r(test_next, ", ", &test_next);                       \
                                                                                            \
            tests[i] = (struct CMUnitTest){name, test_functions[i], setup, teardown, NULL}; \
        }                                                                                   \
        return cmocka_run_group_tests(tests, NULL, NULL);                                   \
    }

/* A random number below `below`, from 31 bits. A 64-bit LCG with Knuth's MMIX constants: its high bits are
 * good enough, and the same on every machine. */
static inline uint64_t lcg_below(uint64_t *seed, uint64_t below)
{
    *seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (*seed >> 33) % below;
}
