/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Records: structs as lines of text, "kind key=value key=value". One table per struct drives both writing and
 * reading, so that the two cannot drift apart.
 *
 * Numbers are decimal, booleans yes or no, enums a name. CPU and node sets are a list such as "0-3,8", or
 * "empty". Strings are in double quotes; the quote, the backslash and every byte outside printable ASCII are
 * written as \xNN. "-" is NULL. Keys come in any order, each at most once; a missing key leaves its field as
 * it was. Empty lines and lines that start with # are skipped. */

#include "base/intern.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Limits against hostile text. */
#define RECORD_TEXT_MAX   (128UL << 20) /* bytes of text; a hundred thousand tasks take a quarter of it */
#define RECORD_POOL_MAX   (64UL << 20)  /* bytes of strings and masks interned for one reader */
#define RECORD_LIST_MAX   4096U         /* numbers in one RECORD_NUMBERS or RECORD_NUMBERS64 */
#define RECORD_FIELDS_MAX 64U           /* rows of a table */

typedef enum RecordType {
    RECORD_BOOL,      /* bool */
    RECORD_ENUM8,     /* uint8_t holding an index into `names` */
    RECORD_ENUM,      /* int-sized enum; likewise */
    RECORD_U16,       /* uint16_t */
    RECORD_U32,       /* uint32_t */
    RECORD_U64,       /* uint64_t */
    RECORD_INDEX,     /* int32_t, pid_t, or one of the index structs of base/ids.h: -1 or more */
    RECORD_CHARS,     /* char[size], terminated */
    RECORD_TEXT,      /* char *, malloc'd; a value read replaces (and frees) the old one */
    RECORD_STRING,    /* const char *, interned */
    RECORD_MASK,      /* CpuMask, interned; finite */
    RECORD_NUMBERS,   /* RecordNumbers; "10,21,21,10" */
    RECORD_NUMBERS64, /* RecordNumbers; likewise, or "-" for none */
    RECORD_TYPE_MAX,
    RECORD_TYPE_INVALID = -EINVAL,
} RecordType;

typedef struct RecordField {
    const char *name;
    RecordType type;
    uint32_t offset;          /* of the field in the object that the table describes */
    bool required;            /* reading fails when the key is missing */
    uint32_t size;            /* RECORD_CHARS */
    const char *const *names; /* RECORD_ENUM, RECORD_ENUM8: NULL-terminated */
} RecordField;

/* A malloc'd list: at least one uint32_t (RECORD_NUMBERS), or any number of uint64_t (RECORD_NUMBERS64). */
typedef struct RecordNumbers {
    void *values;
    size_t n, capacity;
} RecordNumbers;

void record_numbers_done(RecordNumbers *numbers);

/* Writes one line. Errors (out of memory, when `out` is from open_memstream(3)) stay in the stream: check
 * ferror(3). */
void record_write(FILE *out, const char *kind, const RecordField *fields, size_t n, const void *object);

/* Reads the lines of one text, one after another. */
typedef struct RecordReader {
    char *text; /* own copy, split while it is read */
    char *next;
    InternPool *pool; /* borrowed; may be NULL when no table has RECORD_STRING or RECORD_MASK */
    size_t pool_bytes;
    unsigned line;
    const char *kind; /* first word of the current line; NULL: at the end */
    char *fields;     /* the rest of the line */
    char *error;      /* "line N: expected ..." */
} RecordReader;

/* Copies the text; no line is read yet. Returns 0, -EINVAL (too large, or a NUL byte; see `error`) or -ENOMEM. */
int record_reader_init(RecordReader *reader, const char *text, size_t len);
void record_reader_done(RecordReader *reader);

/* Moves to the next line; at the end, `kind` is NULL. Returns 0, -EINVAL with `error` set, or -ENOMEM. */
int record_next(RecordReader *reader);

/* Whether the current line is of this kind; false at the end. */
bool record_is(const RecordReader *reader, const char *kind);

/* Reads the keys of the current line into `object`. Returns 0, -EINVAL with `error` set, or -ENOMEM; on
 * failure, some fields may already be written. */
int record_read(RecordReader *reader, const RecordField *fields, size_t n, void *object);

/* Sets `error` to "line N: expected WHAT", where N is the line read last. Returns -EINVAL, or -ENOMEM. */
int record_expected(RecordReader *reader, const char *what, ...) __attribute__((format(printf, 2, 3)));
