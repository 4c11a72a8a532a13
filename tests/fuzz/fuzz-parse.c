/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* All of base/parse.h over one text. A failure must leave the result alone, and a parsed value must survive
 * being written and read again. */

#include "base/parse.h"
#include "fuzz.h"

#define UNTOUCHED 0x55

#define TRY(parser, text, type)                                                  \
    do {                                                                         \
        type _v = UNTOUCHED;                                                     \
        int _r = parser(text, &_v);                                              \
        check(_r == 0 || ((_r == -EINVAL || _r == -ERANGE) && _v == UNTOUCHED)); \
    } while (0)

static void try_span(const char *text)
{
    uint64_t usec, again;
    char buf[64];

    if (parse_span_usec(text, &usec) == 0)
        check(parse_span_usec(format_span(usec, buf, sizeof(buf)), &again) == 0 && again == usec);
}

static void try_list(const char *text)
{
    CLEANUP_BITMAP hwloc_bitmap_t set = hwloc_bitmap_alloc(), again = hwloc_bitmap_alloc();
    CLEANUP_FREE char *list = NULL;
    int r;

    check(set && again);
    r = parse_list(text, PARSE_CPU_MAX, set);
    if (r == 0) {
        list = format_list(set, PARSE_CPU_MAX);
        check(list && parse_list(list, PARSE_CPU_MAX, again) == 0 && hwloc_bitmap_isequal(set, again));
        check(hwloc_bitmap_last(set) <= (int)PARSE_CPU_MAX);
    } else {
        check((r == -EINVAL || r == -ERANGE) && hwloc_bitmap_iszero(set));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP_FREE char *text = fuzz_text(data, size);
    bool v;

    TRY(parse_u64, text, uint64_t);
    TRY(parse_u32, text, uint32_t);
    TRY(parse_i32, text, int32_t);
    TRY(parse_span_usec, text, uint64_t);
    TRY(parse_bytes, text, uint64_t);
    TRY(parse_permille, text, uint32_t);
    (void)parse_bool(text, &v);
    try_span(text);
    try_list(text);
    return 0;
}
