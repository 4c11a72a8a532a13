/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The INI grammar of all configuration files, and the messages about them. Knows no key names. */

#include "base/util.h"

#include <stdbool.h>
#include <stddef.h>

#define CONF_FILE_MAX (1024UL * 1024UL) /* a larger file is not a configuration file */
#define CONF_LINE_MAX 8192U

typedef enum ConfSeverity {
    CONF_SEVERITY_WARNING, /* the line is ignored */
    CONF_SEVERITY_ERROR,   /* the file is invalid as a whole */
    CONF_SEVERITY_MAX,
    CONF_SEVERITY_INVALID = -EINVAL,
} ConfSeverity;

typedef struct ConfMessage {
    ConfSeverity severity;
    char *file;
    unsigned line; /* 0: about the file as a whole */
    char *text;    /* one line, printable: what was found and what was expected */
} ConfMessage;

/* Messages in the order found. At most CONF_MESSAGES_MAX are kept, the rest only counted. */
#define CONF_MESSAGES_MAX 1000U

typedef struct ConfReport {
    ConfMessage *messages;
    size_t n_messages, capacity;
    size_t n_errors, n_warnings; /* including those not kept */
} ConfReport;

void conf_report_done(ConfReport *report);
void conf_report_add(ConfReport *report, ConfSeverity severity, const char *file, unsigned line,
                     const char *format, ...) __attribute__((format(printf, 5, 6)));
/* "FILE:LINE: TEXT" (no line number when it is 0), malloc'd. */
char *conf_message_format(const ConfMessage *message);

typedef struct ConfHandler {
    /* A "[Section]" line. Called for every one, also for a repeated name. Return 0, or -ENOMEM. */
    int (*section)(void *userdata, const char *section, const char *file, unsigned line, ConfReport *report);
    /* A "Key=value" line, blanks around both removed, continuation lines joined. `section` is never NULL. */
    int (*entry)(void *userdata, const char *section, const char *key, const char *value, const char *file,
                 unsigned line, ConfReport *report);
} ConfHandler;

/* Parses `text`. Comments are whole lines that start with # or ; -- a trailing backslash continues a line -- CRLF and a
 * UTF-8 byte order mark are accepted. NUL bytes, control characters, text before the first section, lines without
 * "=" and lines longer than CONF_LINE_MAX are errors in `report`. Returns 0 when no error was added, -EBADMSG when
 * some was, -ENOMEM. */
int conf_parse(const char *text, size_t len, const char *file, const ConfHandler *handler, void *userdata,
               ConfReport *report);

/* Reads and parses one file. Also reports unreadable, non-regular, empty-of-meaning (not an error) and too large files. */
int conf_parse_file(const char *path, const ConfHandler *handler, void *userdata, ConfReport *report);
