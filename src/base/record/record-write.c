/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The writing half of records. Errors stay in the stream, as in stdio: a text is hundreds of small writes,
 * and only whether all of them succeeded matters. */

#include "base/record/record.h"

#include <inttypes.h>
#include <string.h>

static void write_quoted(FILE *out, const char *s, size_t len)
{
    (void)fputc('"', out);
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)s[i];

        if (c < ' ' || c > '~' || c == '"' || c == '\\')
            (void)fprintf(out, "\\x%02x", c);
        else
            (void)fputc(c, out);
    }
    (void)fputc('"', out);
}

static void write_string(FILE *out, const char *s)
{
    if (s)
        write_quoted(out, s, strlen(s));
    else
        (void)fputc('-', out);
}

/* Does not use format_list(): it allocates, and every caller would have to forward its failure. */
static void write_mask(FILE *out, CpuMask mask)
{
    const char *comma = "";

    if (!mask) {
        (void)fputc('-', out);
        return;
    }
    if (hwloc_bitmap_iszero(mask)) {
        (void)fputs("empty", out);
        return;
    }
    for (int first = hwloc_bitmap_first(mask); first >= 0;) {
        int end = hwloc_bitmap_next_unset(mask, first);

        (void)fprintf(out, end == first + 1 ? "%s%d" : "%s%d-%d", comma, first, end - 1);
        comma = ",";
        first = hwloc_bitmap_next(mask, end);
    }
}

static void write_numbers(FILE *out, bool wide, const RecordNumbers *numbers)
{
    const uint32_t *narrow_values = numbers->values;
    const uint64_t *wide_values = numbers->values;

    if (wide && numbers->n == 0)
        (void)fputc('-', out);
    for (size_t i = 0; i < numbers->n; i++)
        (void)fprintf(out, "%s%" PRIu64, i ? "," : "", wide ? wide_values[i] : narrow_values[i]);
}

static void write_value(FILE *out, const RecordField *field, const void *value)
{
    switch (field->type) {
    case RECORD_BOOL:
        (void)fputs(*(const bool *)value ? "yes" : "no", out);
        break;
    case RECORD_ENUM8:
        (void)fputs(field->names[*(const uint8_t *)value], out);
        break;
    case RECORD_ENUM:
        (void)fputs(field->names[*(const int *)value], out);
        break;
    case RECORD_U16:
        (void)fprintf(out, "%" PRIu16, *(const uint16_t *)value);
        break;
    case RECORD_U32:
        (void)fprintf(out, "%" PRIu32, *(const uint32_t *)value);
        break;
    case RECORD_U64:
        (void)fprintf(out, "%" PRIu64, *(const uint64_t *)value);
        break;
    case RECORD_INDEX:
        (void)fprintf(out, "%" PRId32, *(const int32_t *)value);
        break;
    case RECORD_CHARS:
        write_quoted(out, value, strnlen(value, field->size));
        break;
    case RECORD_TEXT:
    case RECORD_STRING:
        write_string(out, *(const char *const *)value);
        break;
    case RECORD_MASK:
        write_mask(out, *(const CpuMask *)value);
        break;
    case RECORD_NUMBERS:
    case RECORD_NUMBERS64:
        write_numbers(out, field->type == RECORD_NUMBERS64, value);
        break;
    case RECORD_TYPE_MAX:
    case RECORD_TYPE_INVALID:
        assert(false);
    }
}

void record_write(FILE *out, const char *kind, const RecordField *fields, size_t n, const void *object)
{
    (void)fputs(kind, out);
    for (size_t i = 0; i < n; i++) {
        (void)fprintf(out, " %s=", fields[i].name);
        write_value(out, &fields[i], (const char *)object + fields[i].offset);
    }
    (void)fputc('\n', out);
}
