/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The INI grammar. The handler gets only well-formed text, an error is always reported, and a text written
 * from what the handler got gives the same again. */

#include "conf/ini.h"
#include "conf/utf8.h"
#include "fuzz.h"

#include <stdio.h>

/* Checks that this is one line of text without blanks at its ends. */
static void check_text(const char *s)
{
    size_t len = strlen(s);

    for (size_t i = 0, n; i < len; i += n) {
        n = utf8_length(s + i, len - i);
        check(n > 0);
        check((unsigned char)s[i] >= 0x20 || s[i] == '\t');
        check(s[i] != 0x7f);
    }
    check(len == 0 || !strchr(" \t", s[0]));
    check(len == 0 || !strchr(" \t", s[len - 1]));
    check(len <= CONF_LINE_MAX);
}

static int on_section(void *userdata, const char *section, const char *file, unsigned line,
                      ConfReport *report)
{
    check(line > 0 && *section);
    check_text(section);
    (void)fprintf(userdata, "[%s]\n", section);
    return 0;
}

static int on_entry(void *userdata, const char *section, const char *key, const char *value, const char *file,
                    unsigned line, ConfReport *report)
{
    check(line > 0 && *section && *key);
    check_text(key);
    check_text(value);
    (void)fprintf(userdata, "%s=%s\n", key, value);
    return 0;
}

static char *parse(const char *text, size_t len, int *ret)
{
    static const ConfHandler handler = {.example = "Match", .section = on_section, .entry = on_entry};
    ConfReport report = {0};
    char *heard = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&heard, &size);

    check(f);
    *ret = conf_parse(text, len, "f", &handler, f, &report);
    check(fclose(f) == 0);
    check(*ret == (report.n_errors > 0 ? -EBADMSG : 0));
    check(report.n_warnings == 0);
    for (size_t i = 0; i < report.n_messages; i++) {
        CLEANUP_FREE char *line = conf_message_format(&report.messages[i]);

        check(line && !strpbrk(line, "\n\r\t\x1b\x7f"));
        check(report.messages[i].line > 0);
    }
    conf_report_done(&report);
    return heard;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP_FREE char *heard = NULL, *again = NULL;
    int r;

    heard = parse((const char *)data, size, &r);
    again = parse(heard, strlen(heard), &r);
    check(r == 0);
    check(strcmp(heard, again) == 0);
    return 0;
}
