/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Messages about configuration files. File names and values come from users and end up on terminals and in
 * the journal. They are made printable and short here, so that no caller has to. */

#include "base/parse.h"
#include "conf/ini.h"
#include "conf/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Enough for any of our sentences with a reasonable value; an 8 KB value is cut. */
#define TEXT_MAX 400U

/* Copies `s`, writes unprintable bytes as `\xNN`, and cuts the copy after `max` bytes. */
static char *make_printable(const char *s, size_t max)
{
    size_t len = strlen(s), o = 0;
    char *copy = malloc(MIN(len * 4, max) + sizeof("..."));

    if (!copy)
        return NULL;
    for (size_t i = 0; i < len;) {
        size_t n = utf8_length(s + i, len - i);
        bool good = utf8_is_printable(s + i, n);

        n = MAX(n, (size_t)1);
        if (o + (good ? n : 4 * n) > max) {
            memcpy(copy + o, "...", 3);
            o += 3;
            break;
        }
        if (good) {
            memcpy(copy + o, s + i, n);
            o += n;
        } else {
            for (size_t k = 0; k < n; k++, o += 4)
                (void)snprintf(copy + o, sizeof("\\xNN"), "\\x%02x", (unsigned char)s[i + k]);
        }
        i += n;
    }
    copy[o] = '\0';
    return copy;
}

void conf_report_done(ConfReport *report)
{
    for (size_t i = 0; i < report->n_messages; i++) {
        free(report->messages[i].file);
        free(report->messages[i].text);
    }
    free(report->messages);
    *report = (ConfReport){0};
}

void conf_report_add(ConfReport *report, ConfSeverity severity, const char *file, unsigned line,
                     const char *format, ...)
{
    CLEANUP_FREE char *text = NULL;
    ConfMessage message = {.severity = severity, .line = line};
    va_list ap;

    if (severity == CONF_SEVERITY_ERROR)
        report->n_errors++;
    else
        report->n_warnings++;
    if ((severity == CONF_SEVERITY_ERROR ? report->n_errors : report->n_warnings) > CONF_MESSAGES_MAX)
        return;

    va_start(ap, format);
    text = format_vtext(format, ap);
    va_end(ap);
    if (!text)
        return; /* out of memory: the message is counted, and the counts decide whether a file is valid */

    message.file = make_printable(file, SIZE_MAX);
    message.text = make_printable(text, TEXT_MAX);
    if (!message.file || !message.text || !GROW(report->messages, report->capacity, report->n_messages + 1)) {
        free(message.file);
        free(message.text);
        return;
    }
    report->messages[report->n_messages++] = message;
}

char *conf_message_format(const ConfMessage *message)
{
    if (message->line > 0)
        return format_text("%s:%u: %s", message->file, message->line, message->text);
    return format_text("%s: %s", message->file, message->text);
}
