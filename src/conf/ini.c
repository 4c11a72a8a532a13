/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The INI grammar, in 200 lines because no packaged library fits. Debian builds inih with lines of 200 bytes,
 * without line numbers and without a callback for sections. libeconf merges sections of the same name, but
 * two [Match] sections mean OR. The grammar follows systemd's where that is strict, and is stricter where
 * systemd warns and continues: a file that is not plain text is rejected as a whole, with one message for all
 * its lines.
 *
 * Blanks at both ends of a line are removed, empty lines and comments skipped, and a trailing backslash joins
 * the next line with one blank between. The result is "[Section]" or "Key=value". Comments between joined
 * lines are skipped too, so that one value of a long list can be commented out.
 *
 *     [Match]                 section("Match", line 1)
 *     Comm=postgres \         entry("Match", "Comm", "postgres postmaster", line 2)
 *         # psql \
 *         postmaster
 */

#include "conf/ini.h"

#include "base/root.h"
#include "conf/utf8.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

typedef struct Parser {
    const ConfHandler *handler;
    void *userdata;
    const char *file;
    ConfReport *report;
    unsigned line;         /* the current physical line */
    unsigned logical_line; /* where the joined line began */
    bool joining;          /* the previous line ended in a backslash */
    char *section;         /* NULL before the first one */
    char *buf;             /* the joined line, not terminated */
    size_t len, capacity;
} Parser;

/* Evaluates to 0: reading continues. */
#define REFUSE(p, ...) \
    (conf_report_add((p)->report, CONF_SEVERITY_ERROR, (p)->file, (p)->logical_line, __VA_ARGS__), 0)

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Removes blanks from both ends of s[*len]. Returns the new start. */
static char *strip(char *s, size_t *len)
{
    while (*len > 0 && is_blank(*s)) {
        s++;
        (*len)--;
    }
    while (*len > 0 && is_blank(s[*len - 1]))
        (*len)--;
    return s;
}

/* Looks for bytes that no text file has and lines that no person wrote. Stops at the first. */
static bool is_text(const char *text, size_t len, const char *file, ConfReport *report)
{
    size_t start = 0;
    unsigned line = 1;

    for (size_t i = 0, n; i < len; i += n) {
        unsigned char c = (unsigned char)text[i];
        bool crlf = c == '\r' && i + 1 < len && text[i + 1] == '\n';
        const char *what = NULL;

        n = utf8_length(text + i, len - i);
        if (c == '\0')
            what = "not a text file: it contains a NUL byte";
        else if (n == 0)
            what = "not UTF-8 text";
        else if ((c < 0x20 && c != '\n' && c != '\t' && !crlf) || c == 0x7f)
            what = "not a text file: it contains a control character";
        else if (c != '\n' && i - start >= CONF_LINE_MAX && !crlf)
            what = "line is longer than 8192 bytes";
        if (what) {
            conf_report_add(report, CONF_SEVERITY_ERROR, file, line, "%s", what);
            return false;
        }
        if (c == '\n') {
            line++;
            start = i + 1;
        }
    }
    return true;
}

/* "[Section]"; `s` starts after the bracket. */
static int parse_section(Parser *p, char *s, size_t len)
{
    char *name;

    if (len == 0 || s[len - 1] != ']' || memchr(s, ']', len - 1) || memchr(s, '[', len))
        return REFUSE(p, "expected a section such as [%s], found: [%.*s", p->handler->example, (int)len, s);
    len--;
    s = strip(s, &len);
    if (len == 0)
        return REFUSE(p, "section without a name");

    name = strndup(s, len);
    if (!name)
        return -ENOMEM;
    free(p->section);
    p->section = name;
    return p->handler->section(p->userdata, name, p->file, p->logical_line, p->report);
}

/* "Key=value", NUL-terminated. */
static int parse_entry(Parser *p, char *s, size_t len)
{
    char *equals = memchr(s, '=', len), *value;
    size_t key_len, value_len;

    if (!equals)
        return REFUSE(p, "expected Key=value or [Section], found: %s", s);
    key_len = (size_t)(equals - s);
    s = strip(s, &key_len);
    value_len = len - (size_t)(equals + 1 - s);
    value = strip(equals + 1, &value_len);
    if (key_len == 0)
        return REFUSE(p, "expected a key before the equals sign");
    if (!p->section)
        return REFUSE(p, "expected a section such as [%s] before the first key, found: %s",
                      p->handler->example, s);
    if (value_len > 0 && value[value_len - 1] == '\\') /* formatted again, it would join the next line */
        return REFUSE(p, "a value cannot end in a backslash");
    s[key_len] = '\0';
    value[value_len] = '\0';
    return p->handler->entry(p->userdata, p->section, s, value, p->file, p->logical_line, p->report);
}

/* Parses the joined line in `buf`. */
static int parse_logical(Parser *p)
{
    size_t len = p->len;
    char *s;

    p->len = 0;
    p->joining = false;
    if (!GROW(p->buf, p->capacity, len + 1))
        return -ENOMEM;
    if (len > CONF_LINE_MAX)
        return REFUSE(p, "joined lines are longer than 8192 bytes");
    s = strip(p->buf, &len);
    s[len] = '\0';
    if (len == 0)
        return 0;
    return *s == '[' ? parse_section(p, s + 1, len - 1) : parse_entry(p, s, len);
}

/* Appends one physical line, without its end, to the logical one. */
static int parse_physical(Parser *p, const char *s, size_t len)
{
    bool more;

    while (len > 0 && is_blank(*s)) {
        s++;
        len--;
    }
    while (len > 0 && (is_blank(s[len - 1]) || s[len - 1] == '\r'))
        len--;
    if (len > 0 && (*s == '#' || *s == ';'))
        return 0;

    more = len > 0 && s[len - 1] == '\\';
    len -= more;
    if (!p->joining)
        p->logical_line = p->line;
    /* Nothing beyond the limit is kept: parse_logical() only has to see that it was exceeded. */
    if (p->len <= CONF_LINE_MAX) {
        if (!GROW(p->buf, p->capacity, p->len + len + 1))
            return -ENOMEM;
        if (p->joining)
            p->buf[p->len++] = ' ';
        if (len > 0)
            memcpy(p->buf + p->len, s, len);
        p->len += len;
    }
    p->joining = more;
    return more ? 0 : parse_logical(p);
}

int conf_parse(const char *text, size_t len, const char *file, const ConfHandler *handler, void *userdata,
               ConfReport *report)
{
    Parser p = {.handler = handler, .userdata = userdata, .file = file, .report = report};
    size_t n_errors = report->n_errors;
    int r = 0;

    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
        text += 3;
        len -= 3;
    }
    if (!is_text(text, len, file, report))
        return -EBADMSG;

    while (r == 0 && len > 0) {
        const char *end = memchr(text, '\n', len);
        size_t n = end ? (size_t)(end - text) : len;

        p.line++;
        r = parse_physical(&p, text, n);
        n += end != NULL;
        text += n;
        len -= n;
    }
    if (r == 0 && p.joining)
        r = parse_logical(&p);

    free(p.section);
    free(p.buf);
    if (r < 0)
        return r;
    return report->n_errors > n_errors ? -EBADMSG : 0;
}

/* Reads up to CONF_FILE_MAX bytes. Never waits: a FIFO in place of a file must not hang the daemon. */
static int read_file(const char *path, char **ret, size_t *ret_len, const char **ret_why)
{
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    int r;

    if (fd < 0 || fstat(fd, &st) < 0) {
        *ret_why = strerror(errno);
        return -EBADMSG;
    }
    if (!S_ISREG(st.st_mode)) {
        *ret_why = S_ISDIR(st.st_mode) ? "it is a directory" : "it is not a regular file";
        return -EBADMSG;
    }
    r = st.st_size > (off_t)CONF_FILE_MAX ? -EFBIG : root_read_fd(fd, CONF_FILE_MAX, ret, ret_len);
    if (r == 0 || r == -ENOMEM)
        return r;
    *ret_why = r == -EFBIG ? "it is larger than 1 MB, the limit for configuration files" : strerror(-r);
    return -EBADMSG;
}

int conf_parse_file(const char *path, const ConfHandler *handler, void *userdata, ConfReport *report)
{
    CLEANUP_FREE char *text = NULL;
    const char *why = NULL;
    size_t len = 0;
    int r = read_file(path, &text, &len, &why);

    if (r == -EBADMSG)
        conf_report_add(report, CONF_SEVERITY_ERROR, path, 0, "cannot be read: %s", why);
    if (r < 0)
        return r;
    return conf_parse(text, len, path, handler, userdata, report);
}
