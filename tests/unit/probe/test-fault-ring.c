/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Records in a ring, written as the kernel writes them. */

#include "base/util.h"
#include "probe/hints/fault-ring.h"
#include "unit-test.h"

#include <linux/perf_event.h>

#define SIZE 4096U

static uint8_t data[SIZE];
static const FaultRing ring = {data, SIZE};
static uint64_t head, tail;

static int setup(void **state)
{
    memset(data, 0xa5, SIZE);
    head = tail = 0;
    return 0;
}

static void put(const void *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        memcpy(&data[(head + i) % SIZE], (const uint8_t *)from + i, 1);
    head += n;
}

static void put_header(uint32_t type, uint16_t size)
{
    const struct perf_event_header header = {.type = type, .size = size};

    put(&header, sizeof(header));
}

static void put_sample(uint32_t pid, uint32_t tid, uint64_t time, uint64_t address, uint32_t cpu)
{
    const uint32_t ids[] = {pid, tid}, cpus[] = {cpu, 0};

    put_header(PERF_RECORD_SAMPLE, 40);
    put(ids, sizeof(ids));
    put(&time, sizeof(time));
    put(&address, sizeof(address));
    put(cpus, sizeof(cpus));
}

static void put_words(uint32_t type, size_t n, uint64_t word)
{
    put_header(type, (uint16_t)(8 + 8 * n));
    for (size_t i = 0; i < n; i++)
        put(&word, sizeof(word));
}

static int next(FaultSample *sample, uint64_t *lost)
{
    return fault_ring_next(&ring, head, &tail, sample, lost);
}

static void expect_end(void)
{
    FaultSample sample;
    uint64_t lost;

    assert_int_equal(next(&sample, &lost), FAULT_RING_END);
    assert_int_equal(tail, head);
}

static void test_samples(void **state)
{
    FaultSample sample;
    uint64_t lost;

    expect_end();
    put_sample(7, 8, 123456789012345, 0x7f1200345678, 3);
    put_sample(7, 9, 123456789012399, 0xffff, 0);
    assert_int_equal(next(&sample, &lost), FAULT_RING_SAMPLE);
    assert_int_equal(sample.pid, 7);
    assert_int_equal(sample.tid, 8);
    assert_int_equal(sample.time_nsec, 123456789012345);
    assert_int_equal(sample.address, 0x7f1200345678);
    assert_int_equal(sample.cpu, 3);
    assert_int_equal(next(&sample, &lost), FAULT_RING_SAMPLE);
    assert_int_equal(sample.tid, 9);
    assert_int_equal(sample.address, 0xffff);
    expect_end();
}

/* At every place in the ring, so that its end cuts every member of a record once. */
static void test_wraps(void **state)
{
    FaultSample sample;
    uint64_t lost;

    for (uint32_t i = 0; i < 3 * SIZE / 8; i++) {
        put_sample(i, i + 1, i + 2, i + 3, i + 4);
        put_words(PERF_RECORD_LOST, 2, i);
        put_words(PERF_RECORD_EXIT, i % 3, i);
        assert_int_equal(next(&sample, &lost), FAULT_RING_SAMPLE);
        assert_int_equal(sample.pid, i);
        assert_int_equal(sample.tid, i + 1);
        assert_int_equal(sample.time_nsec, i + 2);
        assert_int_equal(sample.address, i + 3);
        assert_int_equal(sample.cpu, i + 4);
        assert_int_equal(next(&sample, &lost), FAULT_RING_LOST);
        assert_int_equal(lost, i);
        expect_end();
    }
}

static void test_full(void **state)
{
    FaultSample sample;
    uint64_t lost;
    unsigned n = 0;

    for (; head + 40 <= SIZE; n++)
        put_sample(1, n, 0, 0, 0);
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(next(&sample, &lost), FAULT_RING_SAMPLE);
        assert_int_equal(sample.tid, i);
    }
    expect_end();
}

static void expect_bad(void)
{
    FaultSample sample = {.pid = 77};
    uint64_t lost = 77;

    assert_int_equal(next(&sample, &lost), -EINVAL);
    assert_int_equal(sample.pid, 77);
    assert_int_equal(lost, 77);
    head = tail = 0;
}

static void test_bad(void **state)
{
    put_header(PERF_RECORD_SAMPLE, 0); /* would never end */
    expect_bad();
    put_header(PERF_RECORD_EXIT, 7);
    expect_bad();
    put_header(PERF_RECORD_EXIT, 12);
    put("1234", 4);
    expect_bad();
    put_header(PERF_RECORD_SAMPLE, 40); /* cut */
    expect_bad();
    put_words(PERF_RECORD_SAMPLE, 3, 0); /* another sample type */
    expect_bad();
    put_words(PERF_RECORD_SAMPLE, 5, 0);
    expect_bad();
    put_words(PERF_RECORD_LOST, 1, 0);
    expect_bad();
    put("1234", 4); /* less than a header */
    expect_bad();
    head = SIZE + 8; /* overrun */
    expect_bad();
    tail = 8; /* after the head */
    expect_bad();
}

TEST_MAIN(setup, NULL, test_samples, test_wraps, test_full, test_bad)
