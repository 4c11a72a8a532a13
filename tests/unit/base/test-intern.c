/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The pool of strings and masks. */

#include "../allocations.h"
#include "base/intern.h"
#include "base/parse.h"
#include "unit-test.h"

static hwloc_bitmap_t range(unsigned first, int last)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();

    assert_non_null(set);
    assert_int_equal(hwloc_bitmap_set_range(set, first, last), 0);
    return set;
}

static CpuMask intern_range(InternPool *pool, unsigned first, int last)
{
    CLEANUP_BITMAP hwloc_bitmap_t set = range(first, last);

    return intern_mask(pool, set);
}

static void test_strings(void **state)
{
    CLEANUP(intern_pool_free_p) InternPool *pool = intern_pool_new();
    char text[] = "java";
    const char *a = intern_string(pool, text), *b;

    assert_ptr_not_equal(a, text);
    text[0] = 'l';
    assert_string_equal(a, "java");
    b = intern_string(pool, "java");
    assert_ptr_equal(a, b);
    assert_ptr_not_equal(intern_string(pool, "jav"), a);
    assert_string_equal(intern_string(pool, ""), "");
    assert_null(intern_string(pool, NULL));
    assert_int_equal(intern_pool_size(pool), 3);
}

static void test_masks(void **state)
{
    CLEANUP(intern_pool_free_p) InternPool *pool = intern_pool_new();
    CpuMask a = intern_range(pool, 0, 3), b = intern_range(pool, 0, 5000), all = intern_range(pool, 0, -1);

    assert_true(hwloc_bitmap_weight(a) == 4 && hwloc_bitmap_weight(b) == 5001 && hwloc_bitmap_isfull(all));
    assert_ptr_equal(intern_range(pool, 0, 3), a);
    assert_ptr_equal(intern_range(pool, 0, 3), a); /* again, through the mask remembered as last */
    assert_ptr_equal(intern_range(pool, 0, 5000), b);
    assert_ptr_equal(intern_range(pool, 0, -1), all);
    assert_int_equal(intern_pool_size(pool), 3);
}

/* Bitmaps that have shrunk are still equal to others with the same content. */
static void test_masks_shrunk(void **state)
{
    CLEANUP(intern_pool_free_p) InternPool *pool = intern_pool_new();
    CLEANUP_BITMAP hwloc_bitmap_t set = range(0, 9000);
    CpuMask a = intern_range(pool, 0, 3), other = intern_range(pool, 8, 9);

    assert_ptr_not_equal(a, other);
    assert_int_equal(hwloc_bitmap_clr_range(set, 4, -1), 0);
    assert_ptr_equal(intern_mask(pool, set), a);
}

static void test_has(void **state)
{
    CLEANUP(intern_pool_free_p) InternPool *pool = intern_pool_new();
    CLEANUP_BITMAP hwloc_bitmap_t set = range(0, 3);
    const char *s = intern_string(pool, "java");
    CpuMask a = intern_mask(pool, set), b = intern_range(pool, 8, 9);

    assert_true(intern_has_string(pool, s) && intern_has_mask(pool, a) && intern_has_mask(pool, b));
    assert_false(intern_has_string(pool, "java") || intern_has_mask(pool, set)); /* equal, not the same */
    assert_false(intern_has_string(pool, NULL) || intern_has_mask(pool, NULL));
}

static void test_sweep(void **state)
{
    CLEANUP(intern_pool_free_p) InternPool *pool = intern_pool_new();
    const char *kept = intern_string(pool, "kept");
    CpuMask mask_kept = intern_range(pool, 0, 3);

    assert_non_null(intern_string(pool, "dropped"));
    assert_non_null(intern_range(pool, 4, 7)); /* is also the mask remembered as last */
    assert_int_equal(intern_pool_size(pool), 4);

    for (int i = 0; i < 3; i++) {
        intern_pool_begin(pool);
        intern_mark_string(pool, kept);
        intern_mark_mask(pool, mask_kept);
        intern_mark_string(pool, NULL);
        intern_mark_mask(pool, NULL);
        intern_pool_sweep(pool);
        assert_int_equal(intern_pool_size(pool), 2);
    }
    assert_string_equal(kept, "kept");
    assert_int_equal(hwloc_bitmap_weight(mask_kept), 4);
    assert_ptr_equal(intern_string(pool, "kept"), kept);
    assert_int_equal(hwloc_bitmap_first(intern_range(pool, 4, 7)), 4);
}

/* Interning between begin and sweep marks an entry, new or known. */
static void test_sweep_interned_meanwhile(void **state)
{
    CLEANUP(intern_pool_free_p) InternPool *pool = intern_pool_new();
    const char *known = intern_string(pool, "known");
    CpuMask mask = intern_range(pool, 0, 3), last = intern_range(pool, 4, 7);

    intern_pool_begin(pool);
    assert_ptr_equal(intern_range(pool, 4, 7), last); /* through the mask remembered as last */
    assert_ptr_equal(intern_range(pool, 0, 3), mask);
    assert_ptr_equal(intern_string(pool, "known"), known);
    assert_non_null(intern_string(pool, "new"));
    assert_non_null(intern_range(pool, 8, 9));
    intern_pool_sweep(pool);
    assert_int_equal(intern_pool_size(pool), 5);
}

static void test_many(void **state)
{
    CLEANUP(intern_pool_free_p) InternPool *pool = intern_pool_new();
    static const char *strings[2000];
    static CpuMask masks[2000];
    char text[16];

    for (unsigned i = 0; i < 2000; i++) {
        (void)snprintf(text, sizeof(text), "task-%u", i);
        strings[i] = intern_string(pool, text);
        masks[i] = intern_range(pool, i, (int)i + 1);
    }
    assert_int_equal(intern_pool_size(pool), 4000);
    intern_pool_begin(pool);
    for (unsigned i = 0; i < 2000; i += 2) {
        intern_mark_string(pool, strings[i]);
        intern_mark_mask(pool, masks[i]);
    }
    intern_pool_sweep(pool);
    assert_int_equal(intern_pool_size(pool), 2000);
    for (unsigned i = 0; i < 2000; i += 2) {
        (void)snprintf(text, sizeof(text), "task-%u", i);
        assert_ptr_equal(intern_string(pool, text), strings[i]);
        assert_ptr_equal(intern_range(pool, i, (int)i + 1), masks[i]);
    }
}

/* Fills a pool with the n-th allocation failing, for each n until none fails: a failure returns NULL, what
 * was returned before stays usable, and nothing leaks (which the address sanitizer checks). hwloc's own
 * allocations are not affected. */
static void test_out_of_memory(void **state)
{
    hwloc_bitmap_t sets[40];
    bool failed = true;

    for (unsigned i = 0; i < ARRAY_SIZE(sets); i++)
        sets[i] = range(i, (int)i);
    for (int n = 0; failed; n++) {
        InternPool *pool;
        size_t held = 0;

        allocations_fail_after(n);
        pool = intern_pool_new();
        failed = !pool;
        for (unsigned i = 0; pool && i < ARRAY_SIZE(sets); i++) {
            char text[16];
            const char *s;
            CpuMask mask;

            (void)snprintf(text, sizeof(text), "%u", i);
            s = intern_string(pool, text);
            mask = intern_mask(pool, sets[i]);
            failed = failed || !s || !mask;
            held += (s != NULL) + (mask != NULL);
        }
        allocations_fail_after(-1);
        if (!pool)
            continue;
        assert_int_equal(intern_pool_size(pool), held);
        assert_int_equal(held < 2 * ARRAY_SIZE(sets), failed);
        for (unsigned i = 0; i < ARRAY_SIZE(sets); i++)
            assert_non_null(intern_mask(pool, sets[i]));
        intern_pool_begin(pool);
        intern_pool_sweep(pool);
        assert_int_equal(intern_pool_size(pool), 0);
        assert_null(intern_pool_free(pool));
    }
    for (unsigned i = 0; i < ARRAY_SIZE(sets); i++)
        hwloc_bitmap_free(sets[i]);
}

TEST_MAIN(NULL, NULL, test_strings, test_masks, test_masks_shrunk, test_has, test_sweep,
          test_sweep_interned_meanwhile, test_many, test_out_of_memory)
