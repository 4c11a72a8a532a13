/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A reader splits its own copy of the text in place, so that words and values become C strings for the
 * parsers of base/parse.h without a copy each. Lines with bytes outside printable ASCII are rejected first,
 * so that every message may quote the text.
 *
 * The text is not trusted, so the memory one line can take is bounded. Sets and strings go through the pool,
 * which holds equal ones once, and the growth of the pool is counted. The length of the text alone is no
 * bound: a set written in ten bytes may take eight kilobytes of bitmap. */

#include "base/record/record.h"

#include "base/parse.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

void record_numbers_done(RecordNumbers *numbers)
{
    free(numbers->values);
    *numbers = (RecordNumbers){0};
}

int record_expected(RecordReader *reader, const char *what, ...)
{
    CLEANUP_FREE char *text = NULL;
    va_list ap;

    va_start(ap, what);
    text = format_vtext(what, ap);
    va_end(ap);
    if (!text)
        return -ENOMEM;

    free(reader->error);
    reader->error = format_text("line %u: expected %s", MAX(reader->line, 1U), text);
    return reader->error ? -EINVAL : -ENOMEM;
}

int record_reader_init(RecordReader *reader, const char *text, size_t len)
{
    *reader = (RecordReader){0};
    reader->line = 1;
    if (len > RECORD_TEXT_MAX)
        return record_expected(reader, "at most %lu bytes, not %zu", RECORD_TEXT_MAX, len);

    reader->text = malloc(len + 1);
    if (!reader->text)
        return -ENOMEM;
    if (len > 0)
        memcpy(reader->text, text, len);
    reader->text[len] = '\0';
    reader->next = reader->text;

    if (strlen(reader->text) < len) {
        for (const char *p = reader->text; *p; p++)
            reader->line += *p == '\n';
        return record_expected(reader, "text, not a NUL byte");
    }
    reader->line = 0;
    return 0;
}

void record_reader_done(RecordReader *reader)
{
    free(reader->text);
    free(reader->error);
    *reader = (RecordReader){0};
}

static bool printable(const char *s)
{
    for (; *s; s++)
        if (*s < ' ' || *s > '~')
            return false;
    return true;
}

int record_next(RecordReader *reader)
{
    char *line;

    do {
        reader->kind = NULL;
        line = strsep(&reader->next, "\n");
        if (!line || (!reader->next && !*line))
            return 0;
        reader->line++;
        if (!printable(line))
            return record_expected(reader, "printable ASCII; write other bytes as \\xNN inside quotes");
        line += strspn(line, " ");
    } while (!*line || *line == '#');

    reader->kind = strsep(&line, " ");
    reader->fields = line;
    return 0;
}

bool record_is(const RecordReader *reader, const char *kind)
{
    return reader->kind && strcmp(reader->kind, kind) == 0;
}

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *p = c ? strchr(digits, tolower((unsigned char)c)) : NULL;

    return p ? (int)(p - digits) : -1;
}

/* Removes the quoting in place. `s` is just after the opening quote. Returns the position after the closing
 * one, or NULL on a syntax error. */
static char *unquote(char *s)
{
    char *to = s;

    for (; *s != '"'; s++) {
        int high, low;

        if (*s != '\\') {
            if (!*s)
                return NULL;
            *to++ = *s;
            continue;
        }
        if (s[1] != 'x')
            return NULL;
        high = hex_digit(s[2]);
        low = high < 0 ? -1 : hex_digit(s[3]);
        if (low < 0 || high + low == 0)
            return NULL;
        *to++ = (char)(high * 16 + low);
        s += 3;
    }
    *to = '\0';
    return s + 1;
}

typedef struct RecordValue {
    char *key;
    char *text;
    bool quoted;
} RecordValue;

/* Takes the next key=value off reader->fields; at the end of the line the key is NULL. Returns 0, -EINVAL or
 * -ENOMEM. */
static int cut_value(RecordReader *reader, RecordValue *ret)
{
    char *s = reader->fields, *equals, *end;

    *ret = (RecordValue){0};
    s = s ? s + strspn(s, " ") : NULL;
    if (!s || !*s)
        return 0;
    equals = s + strcspn(s, " =\"");
    if (*equals != '=' || equals == s)
        return record_expected(reader, "key=value, not \"%.40s\"", s);
    *equals = '\0';

    *ret = (RecordValue){.key = s, .text = equals + 1, .quoted = equals[1] == '"'};
    if (ret->quoted) {
        ret->text++;
        end = unquote(ret->text);
        if (!end || (*end && *end != ' '))
            return record_expected(reader, "%s=\"...\", with special characters written as \\xNN", ret->key);
    } else {
        end = ret->text + strcspn(ret->text, " ");
    }
    reader->fields = *end ? end + 1 : NULL;
    if (!ret->quoted)
        *end = '\0';
    return 0;
}

/* Counts `bytes`, plus overhead, if the pool has grown beyond `before` entries. */
static int charge_pool(RecordReader *reader, size_t before, size_t bytes)
{
    /* An entry of the pool costs about 200 bytes besides its value (measured: hash handles, keys, malloc). */
    if (intern_pool_size(reader->pool) > before)
        reader->pool_bytes += bytes + 200;
    if (reader->pool_bytes > RECORD_POOL_MAX)
        return record_expected(reader, "distinct strings and sets of at most %lu bytes in total",
                               RECORD_POOL_MAX);
    return 0;
}

static int read_string(RecordReader *reader, const RecordValue *value, const char **ret)
{
    size_t before = intern_pool_size(reader->pool);
    const char *s = intern_string(reader->pool, value->text);

    if (!s)
        return -ENOMEM;
    *ret = s;
    return charge_pool(reader, before, strlen(s));
}

static int read_mask(RecordReader *reader, const RecordValue *value, CpuMask *ret)
{
    size_t before = intern_pool_size(reader->pool);
    CLEANUP_BITMAP hwloc_bitmap_t set = hwloc_bitmap_alloc();
    CpuMask mask = NULL;
    int r = 0, last;

    if (!set)
        return -ENOMEM;
    if (strcmp(value->text, "empty") != 0)
        r = *value->text ? parse_list(value->text, PARSE_CPU_MAX, set) : -EINVAL;
    last = hwloc_bitmap_last(set);
    if (r == 0)
        mask = intern_mask(reader->pool, set);
    if (r == -EINVAL || r == -ERANGE)
        return record_expected(reader,
                               "%s= a list such as 0-3,8 of numbers up to %u, or empty, not \"%.40s\"",
                               value->key, PARSE_CPU_MAX, value->text);
    if (!mask)
        return -ENOMEM;
    *ret = mask;
    /* The bitmap, and its list form as the pool's key. */
    return charge_pool(reader, before, (size_t)MAX(last, 0) / 8 + strlen(value->text));
}

static int read_numbers(RecordReader *reader, const RecordValue *value, bool wide, RecordNumbers *ret)
{
    char *rest = value->text;

    ret->n = 0;
    while (rest) {
        const char *word = strsep(&rest, ",");
        uint64_t v;

        if (ret->n == RECORD_LIST_MAX || parse_u64(word, &v) < 0 || (!wide && v > UINT32_MAX))
            return record_expected(reader, "%s= at most %u comma-separated numbers, not \"%.40s\"",
                                   value->key, RECORD_LIST_MAX, word);
        if (!util_grow(&ret->values, &ret->capacity, ret->n + 1, wide ? sizeof(uint64_t) : sizeof(uint32_t)))
            return -ENOMEM;
        if (wide)
            ((uint64_t *)ret->values)[ret->n++] = v;
        else
            ((uint32_t *)ret->values)[ret->n++] = (uint32_t)v;
    }
    return 0;
}

static int read_unsigned(RecordReader *reader, const RecordValue *value, uint64_t max, uint64_t *ret)
{
    uint64_t v;

    if (parse_u64(value->text, &v) < 0 || v > max)
        return record_expected(reader, "%s= a number up to %" PRIu64 ", not \"%.40s\"", value->key, max,
                               value->text);
    *ret = v;
    return 0;
}

static int read_index(RecordReader *reader, const RecordValue *value, int32_t *ret)
{
    int32_t v;

    if (parse_i32(value->text, &v) < 0 || v < -1)
        return record_expected(reader, "%s= a number from -1 to %" PRId32 ", not \"%.40s\"", value->key,
                               INT32_MAX, value->text);
    *ret = v;
    return 0;
}

static int read_enum(RecordReader *reader, const RecordValue *value, const char *const *names, int *ret)
{
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], value->text) == 0) {
            *ret = i;
            return 0;
        }
    return record_expected(reader, "%s= a name such as %s, not \"%.40s\"", value->key, names[0], value->text);
}

static int read_bool(RecordReader *reader, const RecordValue *value, bool *ret)
{
    if (strcmp(value->text, "yes") != 0 && strcmp(value->text, "no") != 0)
        return record_expected(reader, "%s=yes or %s=no, not \"%.40s\"", value->key, value->key, value->text);
    *ret = value->text[0] == 'y';
    return 0;
}

static int read_chars(RecordReader *reader, const RecordValue *value, char *ret, size_t size)
{
    size_t len = strlen(value->text);

    if (len >= size)
        return record_expected(reader, "%s= at most %zu bytes, not %zu", value->key, size - 1, len);
    memset(ret, 0, size);
    memcpy(ret, value->text, len);
    return 0;
}

static int read_text(const RecordValue *value, char **ret)
{
    char *copy = strdup(value->text);

    if (!copy)
        return -ENOMEM;
    free(*ret);
    *ret = copy;
    return 0;
}

/* Reads "-", which stands for NULL, if the field's type allows NULL. Returns whether it did. */
static bool read_null(const RecordField *field, const RecordValue *value, void *ret)
{
    if (value->quoted || strcmp(value->text, "-") != 0)
        return false;

    switch (field->type) {
    case RECORD_TEXT:
        free(*(char **)ret);
        *(char **)ret = NULL;
        return true;
    case RECORD_STRING:
        *(const char **)ret = NULL;
        return true;
    case RECORD_MASK:
        *(CpuMask *)ret = NULL;
        return true;
    case RECORD_NUMBERS64:
        ((RecordNumbers *)ret)->n = 0;
        return true;
    default:
        return false;
    }
}

static int read_number(RecordReader *reader, const RecordField *field, const RecordValue *value, void *ret)
{
    uint64_t v = 0;
    int e = 0, r;

    switch (field->type) {
    case RECORD_ENUM8:
        r = read_enum(reader, value, field->names, &e);
        if (r == 0)
            *(uint8_t *)ret = (uint8_t)e;
        return r;
    case RECORD_ENUM:
        return read_enum(reader, value, field->names, ret);
    case RECORD_U16:
        r = read_unsigned(reader, value, UINT16_MAX, &v);
        if (r == 0)
            *(uint16_t *)ret = (uint16_t)v;
        return r;
    case RECORD_U32:
        r = read_unsigned(reader, value, UINT32_MAX, &v);
        if (r == 0)
            *(uint32_t *)ret = (uint32_t)v;
        return r;
    case RECORD_U64:
        return read_unsigned(reader, value, UINT64_MAX, ret);
    case RECORD_INDEX:
        return read_index(reader, value, ret);
    default:
        return read_bool(reader, value, ret);
    }
}

static int read_value(RecordReader *reader, const RecordField *field, const RecordValue *value, void *ret)
{
    bool string = field->type == RECORD_CHARS || field->type == RECORD_TEXT || field->type == RECORD_STRING;

    if (read_null(field, value, ret))
        return 0;
    if (value->quoted != string)
        return record_expected(
            reader, string ? "%s= a string in double quotes" : "%s= a value without quotes", value->key);

    switch (field->type) {
    case RECORD_CHARS:
        return read_chars(reader, value, ret, field->size);
    case RECORD_TEXT:
        return read_text(value, ret);
    case RECORD_STRING:
        return read_string(reader, value, ret);
    case RECORD_MASK:
        return read_mask(reader, value, ret);
    case RECORD_NUMBERS:
    case RECORD_NUMBERS64:
        return read_numbers(reader, value, field->type == RECORD_NUMBERS64, ret);
    default:
        return read_number(reader, field, value, ret);
    }
}

/* Starts at `hint`, because text written from the same table has its order. Returns `n` if there is no `key`. */
static size_t find_field(const RecordField *fields, size_t n, const char *key, size_t hint)
{
    for (size_t i = 0; i < n; i++) {
        size_t at = (hint + i) % n;

        if (strcmp(fields[at].name, key) == 0)
            return at;
    }
    return n;
}

int record_read(RecordReader *reader, const RecordField *fields, size_t n, void *object)
{
    RecordValue value;
    uint64_t seen = 0;
    size_t at = 0;
    int r;

    assert(n <= RECORD_FIELDS_MAX);

    for (;;) {
        r = cut_value(reader, &value);
        if (r < 0)
            return r;
        if (!value.key)
            break;
        at = find_field(fields, n, value.key, at);
        if (at == n)
            return record_expected(reader, "a key of \"%s\", not %.40s=", reader->kind, value.key);
        if (seen & 1ULL << at)
            return record_expected(reader, "%s= at most once per line", value.key);
        seen |= 1ULL << at;
        r = read_value(reader, &fields[at], &value, (char *)object + fields[at].offset);
        if (r < 0)
            return r;
    }

    for (size_t i = 0; i < n; i++)
        if (fields[i].required && !(seen & 1ULL << i))
            return record_expected(reader, "%s=", fields[i].name);
    return 0;
}
