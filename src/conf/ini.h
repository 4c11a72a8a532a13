/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The INI grammar of all configuration files, and the messages about them. It knows no key names. */

#include "base/util.h"

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

/* Messages in the order found. Of each severity CONF_MESSAGES_MAX are kept, so that no number of warnings hides an
 * error; the rest are only counted. */
#define CONF_MESSAGES_MAX 1000U

typedef struct ConfReport {
    ConfMessage *messages;
    size_t n_messages, capacity;
    size_t n_errors, n_warnings; /* including those not kept */
} ConfReport;

void conf_report_done(ConfReport *report);

/* Adds a message. `file` and the text may hold any bytes: control characters and bytes that are not UTF-8 are written
 * as \xNN. A long text is cut, so put foreign text last. Without memory the message is only counted. */
void conf_report_add(ConfReport *report, ConfSeverity severity, const char *file, unsigned line,
                     const char *format, ...) __attribute__((format(printf, 5, 6)));

/* "FILE:LINE: TEXT" (no line number when it is 0), malloc'd. */
char *conf_message_format(const ConfMessage *message);

typedef struct ConfHandler {
    const char *example; /* a section of such files, for messages */
    /* A "[Section]" line. Called for each one, also when a name is repeated. Return 0 or -ENOMEM. */
    int (*section)(void *userdata, const char *section, const char *file, unsigned line, ConfReport *report);
    /* A "Key=value" line, without the blanks around both, continuation lines joined. `section` is never NULL. The
     * strings are valid only during the call. Return 0, also after adding an error to the report, or -ENOMEM. */
    int (*entry)(void *userdata, const char *section, const char *key, const char *value, const char *file,
                 unsigned line, ConfReport *report);
} ConfHandler;

/* Parses `text`, UTF-8. Comments are whole lines that start with # or ;. A trailing backslash continues a
 * line. CRLF and a byte order mark are accepted. Each key before the first section, line without "=" or value
 * that ends in a backslash is an error in `report`. NUL and control characters, bytes that are not UTF-8 and
 * lines longer than CONF_LINE_MAX are one error for the whole file, and no handler is called. Returns 0,
 * -EBADMSG after an error (also a handler's), or -ENOMEM. */
int conf_parse(const char *text, size_t len, const char *file, const ConfHandler *handler, void *userdata,
               ConfReport *report);

/* Reads and parses one file. An unreadable, non-regular or too large file is an error in `report`; an empty
 * one is valid. */
int conf_parse_file(const char *path, const ConfHandler *handler, void *userdata, ConfReport *report);
