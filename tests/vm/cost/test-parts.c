/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The small parts around the model: addresses, bandwidth, the report. */

#include "address.h"
#include "bandwidth.h"
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

    address_map_init(&m, &c);
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

    /* 2 GiB are below the hole, so the middle node has a half on either side. */
    address_map_init(&m, &c);
    assert_int_equal(m.n_lines, LINES(4096));
    assert_int_equal(line_of(&m, 2047 * MIB), LINES(2047));
    assert_int_equal(line_of(&m, 2048 * MIB), NONE);
    assert_int_equal(line_of(&m, 4096 * MIB), LINES(2048));
    assert_int_equal(line_of(&m, 5120 * MIB), LINES(3072));
    assert_int_equal(line_of(&m, 6144 * MIB - 1), LINES(4096) - 1);
    assert_int_equal(line_of(&m, 6144 * MIB), NONE);

    /* Just below the limit there is no hole. */
    c = config_of("nodes=1024:1791 cpus=0 dist=10:20/20:10");
    address_map_init(&m, &c);
    assert_int_equal(line_of(&m, 2814 * MIB), LINES(2814));
}

#define LINE_PSEC 64000
#define SLOT_PSEC 2048000 /* 32 lines */

static void test_alone(void **state)
{
    Bandwidth b;
    uint64_t now = 7 * SLOT_PSEC;

    bandwidth_init(&b, LINE_PSEC, SLOT_PSEC);
    /* All lines of the slot are available at once. One more is available when the next slot begins. */
    for (unsigned i = 0; i < 32; i++)
        assert_int_equal(bandwidth_take(&b, 0, now), 0);
    assert_int_equal(bandwidth_take(&b, 0, now + 500000), SLOT_PSEC - 500000);
    /* A request for an earlier time comes from a CPU whose turn came later: its slot has room. */
    assert_int_equal(bandwidth_take(&b, 1, now - 1), 0);
    bandwidth_init(&b, 0, SLOT_PSEC);
    for (unsigned i = 0; i < 1000; i++)
        assert_int_equal(bandwidth_take(&b, 0, 0), 0);
}

/* CPUs that want more than there is get equal shares, whoever's turn comes first. */
static void test_shares(void **state)
{
    uint64_t at[4], lines[4] = {0};
    Bandwidth b;

    bandwidth_init(&b, LINE_PSEC, SLOT_PSEC);
    for (unsigned cpu = 0; cpu < 4; cpu++)
        at[cpu] = SLOT_PSEC;
    for (uint64_t end = 2 * SLOT_PSEC; end < 1002 * (uint64_t)SLOT_PSEC; end += SLOT_PSEC / 2) {
        for (unsigned cpu = 0; cpu < 4; cpu++) {
            for (; at[cpu] < end; lines[cpu]++)
                at[cpu] += 1000 + bandwidth_take(&b, cpu, at[cpu]);
        }
    }
    for (unsigned cpu = 0; cpu < 4; cpu++)
        assert_in_range(lines[cpu], 8000 - 100, 8000 + 100);
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
    const ModelAccess a = {.user = true};

    assert_non_null(f);
    address_map_init(&map, &c);
    assert_int_equal(model_new(&c, &map, &m), 0);
    (void)model_access(m, 2, &a, 0);
    model_counters(m, 2)->queue_psec = 201000;
    assert_int_equal(report_config(f, &c, 4), 0);
    assert_int_equal(report_counters(f, &c, m, "mark", 7, 3, 123456789), 0);
    (void)read_report(f, &text);
    assert_memory_equal(text, "{\"event\":\"config\",\"api_version\":4,\"nodes\":2,\"cpus\":4,", 50);
    assert_non_null(strstr(text, "\"latency_nsec\":[[100,200],[200,100]]}\n"));
    assert_non_null(strstr(
        text, "\n{\"event\":\"mark\",\"number\":7,\"cpu\":3,\"time_nsec\":123456789,\"cpus\":[{\"cpu\":0,"));
    assert_non_null(
        strstr(text, "{\"cpu\":2,\"node\":1,\"user_local\":0,\"user_remote\":1,\"kernel_local\":0,"
                     "\"kernel_remote\":0,\"line_local\":0,\"line_remote\":0,\"sequential\":0,\"llc\":0,"
                     "\"walks\":0,\"written_back\":0,\"queue_nsec\":201,\"charged_nsec\":200}"));
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
        cmocka_unit_test(test_guest_addresses), cmocka_unit_test(test_hole),
        cmocka_unit_test(test_alone),           cmocka_unit_test(test_shares),
        cmocka_unit_test(test_report),          cmocka_unit_test(test_report_full),
    };

    return cmocka_run_group_tests_name("cost-parts", tests, NULL, NULL);
}
