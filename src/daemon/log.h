/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The daemon's log: structured records when standard error is the journal, plain text lines otherwise. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <syslog.h>

/* Change records written per LOG_RATE_USEC; the next one written says how many were held back. A machine that
 * moves thousands of threads must not fill the journal; the bus keeps every move. */
#define LOG_RATE_BURST 200U
#define LOG_RATE_USEC  (10ULL * 1000000ULL)

#define LOG_FIELDS_MAX  24U   /* structured fields of one record */
#define LOG_FIELDS_TEXT 4096U /* bytes of all of them together */

typedef struct Log {
    bool to_journal;
    int level;           /* least important priority written; LOG_INFO by default */
    uint64_t rate_since; /* start of the current window */
    uint32_t rate_n;     /* records in it */
    uint32_t rate_held;  /* held back since the last record */
    uint64_t suppressed; /* held back since start */
} Log;

/* The structured fields of one record, "NAME=value"; names in capitals, as journal fields are. Zeroed: none. */
typedef struct LogFields {
    size_t n;
    uint16_t ends[LOG_FIELDS_MAX]; /* end of each in `text` */
    char text[LOG_FIELDS_TEXT];
} LogFields;

/* Adds a field, or leaves it out if it does not fit: a record without it is better than none. */
void log_fields_add(LogFields *fields, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Finds out where standard error leads (JOURNAL_STREAM=, sd_journal_send(3)). */
void log_init(Log *log);

/* Writes one record. `message_id` (NUMAPLACE_MESSAGE_...) and `fields` may be NULL. The text must be one
 * line; control characters in it are written as \xNN, so that a process name cannot forge a line. Never
 * fails: a record that cannot be written is lost. */
void log_record(Log *log, int priority, const char *message_id, const LogFields *fields, const char *format,
                ...) __attribute__((format(printf, 5, 6)));

/* Returns whether one more rate-limited record may be written at `now_usec`. *ret_held is the number held
 * back before it. */
bool log_rate(Log *log, uint64_t now_usec, uint32_t *ret_held);

#define log_error(log, id, ...)   log_record(log, LOG_ERR, id, NULL, __VA_ARGS__)
#define log_warning(log, id, ...) log_record(log, LOG_WARNING, id, NULL, __VA_ARGS__)
#define log_notice(log, id, ...)  log_record(log, LOG_NOTICE, id, NULL, __VA_ARGS__)
#define log_info(log, id, ...)    log_record(log, LOG_INFO, id, NULL, __VA_ARGS__)
#define log_debug(log, id, ...)   log_record(log, LOG_DEBUG, id, NULL, __VA_ARGS__)
/* Logs an error, and evaluates to `error`. */
#define log_failure(error, log, id, ...) (log_error(log, id, __VA_ARGS__), (error))
