/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The small parts around the model: addresses, accounts, the report. */

#include "account.h"
#include "address.h"
#include "cost-test.h"
#include "report.h"

#include <errno.h>
#include <stdlib.h>

#define MIB       (1ULL << 20)
#define NONE      UINT64_MAX
#define LINES(mb) ((mb)*MIB / 64)

static uint64_t line_of(const AddressMap *m, uint64_t address)
{
    uint64_t line = NONE;

    (void)address_map_line(m, address, &line);
    return line;
}

static void test_guest_addresses(void **state)
{
    Config c = config_of(COST_TEST_2X2);
    AddressMap m;

    address_map_init(&m, &c, true);
    assert_int_equal(m.n_lines, LINES(128));
    assert_int_equal(line_of(&m, 0), 0);
    assert_int_equal(line_of(&m, 63), 0);
    assert_int_equal(line_of(&m, 64), 1);
    assert_int_equal(line_of(&m, 64 * MIB), LINES(64));
    assert_int_equal(line_of(&m, 128 * MIB - 1), LINES(128) - 1);
    assert_int_equal(line_of(&m, 128 * MIB), NONE);
    assert_int_equal(line_of(&m, 0xfee00000), NONE);
}

static void test_hole(void **state)
{
    Config c = config_of("nodes=1024:2048:1024 cpus=0 dist=10:20:20/20:10:20/20:20:10");
    AddressMap m;

    /* 2 GiB below, so the middle node has a half on either side. */
    address_map_init(&m, &c, true);
    assert_int_equal(m.n_lines, LINES(4096));
    assert_int_equal(line_of(&m, 2047 * MIB), LINES(2047));
    assert_int_equal(line_of(&m, 2048 * MIB), NONE);
    assert_int_equal(line_of(&m, 4096 * MIB), LINES(2048));
    assert_int_equal(line_of(&m, 5120 * MIB), LINES(3072));
    assert_int_equal(line_of(&m, 6144 * MIB - 1), LINES(4096) - 1);
    assert_int_equal(line_of(&m, 6144 * MIB), NONE);

    /* i440fx has 3 GiB below. */
    c.below_4g_mib = 3072;
    address_map_init(&m, &c, true);
    assert_int_equal(line_of(&m, 3071 * MIB), LINES(3071));
    assert_int_equal(line_of(&m, 4096 * MIB), LINES(3072));

    /* Just below the limit there is no hole to go around. */
    c = config_of("nodes=1024:1791 cpus=0 dist=10:20/20:10");
    address_map_init(&m, &c, true);
    assert_int_equal(line_of(&m, 2814 * MIB), LINES(2814));
}

static void test_offset_addresses(void **state)
{
    Config c = config_of("nodes=64:0:32 cpus=0 dist=10:20:20/20:10:20/20:20:10");
    AddressMap m;

    address_map_init(&m, &c, false);
    assert_int_equal(m.n_lines, LINES(96));
    assert_int_equal(line_of(&m, 64 * MIB - 1), LINES(64) - 1);
    assert_int_equal(line_of(&m, 64 * MIB), NONE);
    assert_int_equal(line_of(&m, 128 * MIB), LINES(64));
    assert_int_equal(line_of(&m, 160 * MIB - 1), LINES(96) - 1);
    assert_int_equal(line_of(&m, 160 * MIB), NONE);
}

static void test_account(void **state)
{
    Account a = {0};

    /* 100 accesses of 450 that took 35 each to emulate: all of it is part of them. */
    account_paid(&a, 1000, 1000);
    for (unsigned i = 0; i < 100; i++)
        account_charge(&a, 450, 100);
    assert_int_equal(account_due(&a, 1000 + 3500), 45000 - 3500);
    /* Nothing is hidden twice. */
    assert_int_equal(account_due(&a, 1000 + 4000), 45000 - 3500);

    /* Waited 1000 too long, which is deducted from the next. */
    account_paid(&a, 5000, 5000 + 42500);
    account_charge(&a, 450, 0);
    assert_int_equal(account_due(&a, 60000), 450 - 1000);

    /* Of a long pause no more is taken than the accesses can hide, and cheap ones hide no more than they cost. */
    a = (Account){0};
    account_charge(&a, 450, 100);
    account_charge(&a, 75, 100);
    assert_int_equal(account_due(&a, 1000000000), 525 - 175);

    /* Hours of sleep give no hours of credit. */
    account_paid(&a, 0, 3600ULL * 1000000000);
    assert_int_equal(a.debt_nsec, -CREDIT_MAX_NSEC);
}

static char *read_report(FILE *f, char **text)
{
    assert_int_equal(fclose(f), 0);
    assert_non_null(*text);
    return *text;
}

static void test_report(void **state)
{
    Config c = config_of(COST_TEST_2X2);
    AddressMap map;
    Model *m;
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    int node;

    assert_non_null(f);
    address_map_init(&map, &c, true);
    assert_int_equal(model_new(&c, &map, &m), 0);
    (void)model_access(m, 2, 0, false, true, &node);
    model_counters(m, 2)->waited_nsec = 201;
    assert_int_equal(report_config(f, &c, 4), 0);
    assert_int_equal(report_counters(f, &c, m, "mark", 7, 3, 123456789), 0);
    (void)read_report(f, &text);
    assert_memory_equal(text, "{\"event\":\"config\",\"api_version\":4,\"nodes\":2,\"cpus\":4,", 50);
    assert_non_null(strstr(text, "\"latency_nsec\":[[100,200],[200,100]]}\n"));
    assert_non_null(strstr(
        text, "\n{\"event\":\"mark\",\"number\":7,\"cpu\":3,\"time_nsec\":123456789,\"cpus\":[{\"cpu\":0,"));
    assert_non_null(strstr(text,
                           "{\"cpu\":2,\"node\":1,\"user_local\":0,\"user_remote\":1,\"kernel_local\":0,"
                           "\"kernel_remote\":0,\"line_local\":0,\"line_remote\":0,\"llc\":0,"
                           "\"queue_nsec\":0,\"charged_nsec\":200,\"waited_nsec\":201}"));
    assert_string_equal(text + strlen(text) - 4, "}]}\n");
    free(text);
    m = model_free(m);
    assert_null(m);
}

static void test_report_full(void **state)
{
    Config c = config_of(COST_TEST_2X2);
    FILE *f = fopen("/dev/full", "we");

    if (!f)
        skip();
    assert_int_equal(report_config(f, &c, 1), -ENOSPC);
    (void)fclose(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_guest_addresses),  cmocka_unit_test(test_hole),
        cmocka_unit_test(test_offset_addresses), cmocka_unit_test(test_account),
        cmocka_unit_test(test_report),           cmocka_unit_test(test_report_full),
    };

    return cmocka_run_group_tests_name("cost-parts", tests, NULL, NULL);
}
