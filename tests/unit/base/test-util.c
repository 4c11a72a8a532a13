/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/time.h"
#include "base/util.h"
#include "unit-test.h"

#include <fcntl.h>

static void test_grow(void **state)
{
    CLEANUP_FREE uint32_t *array = NULL;
    size_t capacity = 0, steps = 0;

    for (size_t i = 0; i < 1000; i++) {
        size_t before = capacity;

        assert_true(GROW(array, capacity, i + 1));
        assert_true(capacity > i);
        steps += capacity != before;
        array[i] = (uint32_t)i;
    }
    assert_true(steps < 10); /* doubling */
    for (size_t i = 0; i < 1000; i++)
        assert_int_equal(array[i], i);
}

static void test_grow_overflow(void **state)
{
    CLEANUP_FREE uint64_t *array = NULL;
    uint64_t *before;
    size_t capacity = 0;

    assert_true(GROW(array, capacity, 1));
    before = array;
    assert_false(GROW(array, capacity, SIZE_MAX));
    assert_false(GROW(array, capacity, SIZE_MAX / 8 + 1));
    assert_ptr_equal(array, before);
    assert_int_equal(capacity, 8);
}

/* Inserts at the front, in the middle and at the end, with all growth that is needed. */
static void test_insert(void **state)
{
    CLEANUP_FREE uint32_t *array = NULL;
    size_t capacity = 0, n = 0;

    for (uint32_t i = 0; i < 1000; i++) {
        uint32_t value = i * 7919 % 1000; /* each number once */
        size_t at = LOWER_BOUND(k, n, array[k] < value);

        assert_true(INSERT(array, capacity, n, at));
        array[at] = value;
        assert_int_equal(n, i + 1);
    }
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(array[i], i);
}

static void test_lower_bound(void **state)
{
    static const int values[] = {1, 3, 3, 3, 8};

    assert_int_equal(LOWER_BOUND(i, 0, values[i] < 3), 0);
    for (size_t n = 1; n <= ARRAY_SIZE(values); n++)
        for (int wanted = 0; wanted < 10; wanted++) {
            size_t expected = 0;

            while (expected < n && values[expected] < wanted)
                expected++;
            assert_int_equal(LOWER_BOUND(i, n, values[i] < wanted), expected);
        }
}

static char *make_string(const char *text)
{
    CLEANUP_FREE char *own = strdup(text);

    return TAKE_PTR(own); /* otherwise the address sanitizer finds a use after free below */
}

static void test_take_ptr(void **state)
{
    CLEANUP_FREE char *a = make_string("kept"), *b = NULL;

    b = TAKE_PTR(a);
    assert_null(a);
    assert_string_equal(b, "kept");
}

static void test_fd(void **state)
{
    int inner, kept;

    {
        CLEANUP_CLOSE int fd = open("/dev/null", O_RDONLY | O_CLOEXEC),
                          other = open("/dev/null", O_RDONLY | O_CLOEXEC);

        assert_true(fd >= 0 && other >= 0);
        inner = fd;
        kept = TAKE_FD(other);
        assert_int_equal(other, -1);
    }
    assert_int_equal(fcntl(inner, F_GETFD), -1);
    assert_int_equal(errno, EBADF);
    assert_true(fcntl(kept, F_GETFD) >= 0);
    (void)close(kept);
}

static void test_macros(void **state)
{
    assert_int_equal(MIN(3, 4), 3);
    assert_int_equal(MAX(3, 4), 4);
    assert_int_equal(CLAMP(7, 1, 5), 5);
    assert_int_equal(CLAMP(-7, 1, 5), 1);
    assert_int_equal(CLAMP(3, 1, 5), 3);
    assert_int_equal(ARRAY_SIZE("abc"), 4);
}

/* Clocks go forward in the units of their names. */
static void test_time(void **state)
{
    uint64_t usec = time_now_usec(), cpu = time_thread_cpu_nsec();

    while (time_thread_cpu_nsec() - cpu < 100 * NSEC_PER_USEC)
        continue;
    assert_true(time_now_usec() - usec >= 100);
}

TEST_MAIN(NULL, NULL, test_grow, test_grow_overflow, test_insert, test_lower_bound, test_take_ptr, test_fd,
          test_macros, test_time)
