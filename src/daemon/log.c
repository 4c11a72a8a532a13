/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A terminal, a file and a container's log collector get plain lines; the journal gets fields that can be filtered by
 * workload and rule. A record is written with one write(2), so that lines of several programs do not mix. */

#include "daemon/log.h"

#include "base/util.h"
#include "conf/utf8.h"

#define SD_JOURNAL_SUPPRESS_LOCATION 1 /* the source location says less than the message id */
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <systemd/sd-journal.h>

#define LOG_TEXT_MAX 4096U

/* JOURNAL_STREAM= holds device and inode of the journal's socket. Comparing them shows whether standard error
 * was redirected since. */
static bool stderr_is_journal(void)
{
    const char *s = getenv("JOURNAL_STREAM");
    uintmax_t dev, ino;
    struct stat st;

    if (!s || sscanf(s, "%ju:%ju", &dev, &ino) != 2)
        return false;
    return fstat(STDERR_FILENO, &st) == 0 && dev == (uintmax_t)st.st_dev && ino == (uintmax_t)st.st_ino;
}

void log_init(Log *log)
{
    *log = (Log){.to_journal = stderr_is_journal(), .level = LOG_INFO};
}

void log_fields_add(LogFields *fields, const char *name, const char *format, ...)
{
    size_t start = fields->n > 0 ? fields->ends[fields->n - 1] : 0;
    size_t room = sizeof(fields->text) - start;
    int head, tail;
    va_list ap;

    if (fields->n >= LOG_FIELDS_MAX)
        return;
    head = snprintf(fields->text + start, room, "%s=", name);
    if (head < 0 || (size_t)head >= room)
        return;
    va_start(ap, format);
    tail = vsnprintf(fields->text + start + head, room - (size_t)head, format, ap);
    va_end(ap);
    if (tail < 0 || (size_t)head + (size_t)tail >= room)
        return;
    fields->ends[fields->n++] = (uint16_t)(start + (size_t)head + (size_t)tail);
}

static bool send_to_journal(int priority, const char *message_id, const LogFields *fields, const char *text)
{
    char message[LOG_TEXT_MAX + 16], level[16], id[64];
    struct iovec iov[LOG_FIELDS_MAX + 3];
    size_t start = 0;
    int n = 0;

    iov[n].iov_base = message;
    iov[n++].iov_len = (size_t)snprintf(message, sizeof(message), "MESSAGE=%s", text);
    iov[n].iov_base = level;
    iov[n++].iov_len = (size_t)snprintf(level, sizeof(level), "PRIORITY=%d", priority);
    if (message_id) {
        iov[n].iov_base = id;
        iov[n++].iov_len = (size_t)snprintf(id, sizeof(id), "MESSAGE_ID=%s", message_id);
    }
    for (size_t i = 0; fields && i < fields->n; i++) {
        iov[n].iov_base = (char *)(uintptr_t)fields->text + start;
        iov[n++].iov_len = fields->ends[i] - start;
        start = fields->ends[i];
    }
    return sd_journal_sendv(iov, n) >= 0;
}

static void write_line(const char *text)
{
    char line[LOG_TEXT_MAX + 32];
    int len = snprintf(line, sizeof(line), "numaplaced: %s\n", text);

    (void)TEMP_FAILURE_RETRY(write(STDERR_FILENO, line, (size_t)len));
}

void log_record(Log *log, int priority, const char *message_id, const LogFields *fields, const char *format,
                ...)
{
    char raw[LOG_TEXT_MAX / 4], text[LOG_TEXT_MAX];
    va_list ap;

    if (priority > log->level)
        return;
    va_start(ap, format);
    (void)vsnprintf(raw, sizeof(raw), format, ap);
    va_end(ap);
    (void)utf8_escape(raw, text, sizeof(text));
    if (log->to_journal && send_to_journal(priority, message_id, fields, text))
        return;
    write_line(text);
}

bool log_rate(Log *log, uint64_t now_usec, uint32_t *ret_held)
{
    if (now_usec - log->rate_since >= LOG_RATE_USEC) {
        log->rate_since = now_usec;
        log->rate_n = 0;
    }
    if (log->rate_n >= LOG_RATE_BURST) {
        log->rate_held++;
        log->suppressed++;
        return false;
    }
    log->rate_n++;
    *ret_held = log->rate_held;
    log->rate_held = 0;
    return true;
}
