/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The vectors of P5: the formula alone, and through whole machines. */

#include "../machine.h"
#include "topo/imbalance.h"

static void test_base(void **state)
{
    assert_int_equal(imbalance_base(40, 40), 5);  /* 2x40 */
    assert_int_equal(imbalance_base(64, 64), 8);  /* 2x64 */
    assert_int_equal(imbalance_base(36, 36), 4);  /* 8x36 */
    assert_int_equal(imbalance_base(8, 8), 1);    /* 4x8 */
    assert_int_equal(imbalance_base(128, 16), 8); /* Zen 3, NPS1 */
    assert_int_equal(imbalance_base(64, 16), 4);  /* NPS2 */
    assert_int_equal(imbalance_base(32, 16), 2);  /* NPS4 */
    assert_int_equal(imbalance_base(4, 4), 1);    /* 4 / 8 is 0; never below 1 */
    assert_int_equal(imbalance_base(12, 10), 1);  /* unequal LLCs: one and a bit counts as one */
    assert_int_equal(imbalance_base(10, 20), 1);  /* an LLC wider than the domain */
    assert_int_equal(imbalance_base(1, 0), 1);    /* degenerate input has an answer too */
}

static void test_scaled(void **state)
{
    assert_int_equal(imbalance_scaled(5, 80, 80), 5);
    assert_int_equal(imbalance_scaled(4, 256, 128), 8);
    assert_int_equal(imbalance_scaled(2, 256, 128), 4);
    assert_int_equal(imbalance_scaled(4, 144, 144), 4);
    assert_int_equal(imbalance_scaled(4, 288, 144), 8);
    assert_int_equal(imbalance_scaled(4, 300, 144), 8); /* rounded down */
    assert_int_equal(imbalance_scaled(4, 32, 144), 4);  /* never below the base */
    assert_int_equal(imbalance_scaled(4, 32, 0), 4);
}

static void test_adjust(void **state)
{
    assert_int_equal(imbalance_adjust(2, 5, 5), 0);
    assert_int_equal(imbalance_adjust(3, 5, 5), 3);
    assert_int_equal(imbalance_adjust(2, 6, 5), 2);
    assert_int_equal(imbalance_adjust(4, 4, 8), 4);
    assert_int_equal(imbalance_adjust(0, 99, 5), 0);
}

/* Checks the allowed imbalances of the domains of `description` above the LLC, the node's first. */
static void check_domains(const char *description, uint32_t n, const uint32_t imb[])
{
    CLEANUP(topology_unref_p) Topology *topology = test_machine(description);

    assert_int_equal(topology->n_domains, n);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(topology->domains[i].imb_numa_nr, imb[i]);
        assert_int_equal(topology->domains[i].numa, i > 0);
    }
}

#define CHECK_DOMAINS(description, ...)                                              \
    check_domains(description, sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), \
                  (uint32_t[]){__VA_ARGS__})

static void test_machines(void **state)
{
    CHECK_DOMAINS("numa:2 l3:1 core:20 pu:2", 5, 5);
    CHECK_DOMAINS("numa:2 l3:1 core:32 pu:2", 8, 8);
    CHECK_DOMAINS("numa:4 l3:1 core:8 pu:1", 1, 1);
    CHECK_DOMAINS("numa:2 l3:8 core:8 pu:2", 8, 8);
    CHECK_DOMAINS("pack:2 numa:2 l3:4 core:8 pu:2 distances=10,12,32,32,12,10,32,32,32,32,10,12,32,32,12,10",
                  4, 4, 8);
    CHECK_DOMAINS("numa:1 l3:1 core:4 pu:1", 1);
}

/* Four nodes in a row: a level's span is that of its largest domain. Seen from an inner node, distance 15
 * spans three nodes; seen from an outer one, it spans two. */
static void test_row(void **state)
{
    CLEANUP(topology_unref_p)
    Topology *topology = test_machine("numa:4 l3:1 core:4 pu:1 "
                                      "distances=10,15,20,25,15,10,15,20,20,15,10,15,25,20,15,10");
    const uint32_t span[] = {4, 12, 16, 16}, distance[] = {10, 15, 20, 25};

    assert_int_equal(topology->n_domains, ARRAY_SIZE(span));
    for (size_t i = 0; i < ARRAY_SIZE(span); i++) {
        assert_int_equal(topology->domains[i].span, span[i]);
        assert_int_equal(topology->domains[i].distance, distance[i]);
    }
}

TEST_MAIN(NULL, NULL, test_base, test_scaled, test_adjust, test_machines, test_row)
