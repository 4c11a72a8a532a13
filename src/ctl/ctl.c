/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Output that all verbs share. All foreign text passes through here on its way to a terminal: messages
 * through text_printable(), JSON through print_json(). */

#include "ctl/ctl.h"

#include "base/parse.h"
#include "base/root.h"
#include "conf/utf8.h"
#include "ctl/text.h"

#include <fcntl.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Prints a value and a newline. json-c escapes what JSON requires, but not DEL nor the C1 controls U+0080 to
 * U+009F, which a terminal may take for the start of an escape sequence. They occur only in strings, where \u
 * is allowed. Returns false when out of memory. */
static bool print_json(FILE *out, json_object *value, int flags)
{
    const char *json = json_object_to_json_string_ext(value, flags | JSON_C_TO_STRING_NOSLASHESCAPE);

    for (const unsigned char *u = (const unsigned char *)json; u && *u; u++) {
        if (u[0] == 0x7f) {
            (void)fputs("\\u007f", out);
        } else if (u[0] == 0xc2 && u[1] >= 0x80 && u[1] < 0xa0) {
            (void)fprintf(out, "\\u%04x", u[1]);
            u++;
        } else {
            (void)fputc(u[0], out);
        }
    }
    if (json)
        (void)fputc('\n', out);
    return json;
}

static const char *failing_program = "numaplacectl";

void ctl_fail_of(const char *program)
{
    failing_program = program;
}

static bool fails_in_json = false;

void ctl_fail_in_json(bool yes)
{
    fails_in_json = yes;
}

static bool fails_as_run = false;

void ctl_fail_as_run(void)
{
    fails_as_run = true;
}

/* {"error":"...","exit":N} */
static bool print_failure(CtlExit code, const char *text)
{
    CLEANUP_JSON json_object *object = json_object_new_object();

    return json_set_text(object, "error", text) == 0 && json_set_number(object, "exit", code) == 0 &&
           print_json(stderr, object, JSON_C_TO_STRING_PLAIN);
}

static bool fails_later = false;
static char *kept_failure = NULL;

void ctl_forget_failure(void)
{
    free(kept_failure);
    kept_failure = NULL;
}

void ctl_fail_later(bool yes)
{
    fails_later = yes;
    if (!yes && kept_failure)
        (void)fprintf(stderr, "%s: %s\n", failing_program, kept_failure);
    ctl_forget_failure();
}

CtlExit ctl_fail(CtlExit code, const char *format, ...)
{
    CLEANUP_FREE char *printable = NULL;
    va_list ap;

    va_start(ap, format);
    printable = text_vprintable(format, ap);
    va_end(ap);
    if (fails_as_run && code != CTL_EXIT_OK && code < CTL_EXIT_RUN_FAILURE)
        code = CTL_EXIT_RUN_FAILURE;
    if (fails_later) {
        free(kept_failure);
        kept_failure = TAKE_PTR(printable);
        return code;
    }
    if (!fails_in_json || !print_failure(code, printable ? printable : "out of memory"))
        (void)fprintf(stderr, "%s: %s\n", failing_program, printable ? printable : "out of memory");
    return code;
}

CtlExit ctl_fail_oom(void)
{
    return ctl_fail(CTL_EXIT_FAILURE, "out of memory");
}

const char *ctl_flush(void)
{
    static const char *lost = NULL;

    if (fflush(stdout) != 0 && !lost)
        lost = strerror(errno);
    return ferror(stdout) && !lost ? "an earlier write failed" : lost;
}

/* Writes to `fd`, a regular file if `is_file`, and closes it. Returns 0 or -errno. */
static int write_and_close(int fd, bool is_file, void (*write)(FILE *, void *), void *userdata)
{
    FILE *out = fdopen(fd, "w");
    int r;

    if (!out) {
        r = -errno;
        (void)close(fd);
        return r;
    }
    errno = 0;
    write(out, userdata); /* output longer than a buffer fails here, not at the flush */
    r = fflush(out) == 0 && !ferror(out) ? 0 : errno ? -errno : -EIO;
    if (r == 0 && is_file) /* readable by all, and on disk */
        r = fchmod(fd, 0644) == 0 && fsync(fd) == 0 ? 0 : -errno;
    if (fclose(out) != 0 && r == 0)
        r = -errno;
    return r;
}

/* Names of open descriptors of this process. Other links are replaced like files, because somebody else may
 * have made them. */
static bool is_descriptor(const char *path)
{
    return strcmp(path, "/dev/stdout") == 0 || strcmp(path, "/dev/stderr") == 0 ||
           strncmp(path, "/dev/fd/", strlen("/dev/fd/")) == 0;
}

/* A pipe or a device. */
static bool is_no_file(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode);
}

static CtlExit write_through(const char *path, int flags, void (*write)(FILE *, void *), void *userdata)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | flags);
    int r = fd < 0 ? -errno : write_and_close(fd, false, write, userdata);

    return r < 0 ? ctl_fail(CTL_EXIT_FAILURE, "%s: cannot be written: %s", path, strerror(-r)) : CTL_EXIT_OK;
}

CtlExit ctl_replace_file(const char *path, void (*write)(FILE *out, void *userdata), void *userdata)
{
    CLEANUP_FREE char *temporary = NULL;
    int fd, r;

    if (is_descriptor(path))
        return write_through(path, 0, write, userdata);
    if (is_no_file(path))
        return write_through(path, O_NOFOLLOW, write, userdata);
    if (asprintf(&temporary, "%s.XXXXXX", path) < 0) {
        temporary = NULL;
        return ctl_fail_oom();
    }
    fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0)
        return ctl_fail(CTL_EXIT_FAILURE, "%s: cannot be written: %s", path, strerror(errno));
    r = write_and_close(fd, true, write, userdata);
    if (r == 0 && rename(temporary, path) < 0)
        r = -errno;
    if (r == 0)
        return CTL_EXIT_OK;
    (void)unlink(temporary);
    return ctl_fail(CTL_EXIT_FAILURE, "%s: cannot be written: %s", path, strerror(-r));
}

CtlExit ctl_read_file(const char *path, size_t max, char **ret, size_t *ret_len)
{
    int r = root_read_path(path, max, ret, ret_len);

    return r < 0 ? ctl_fail(CTL_EXIT_FAILURE, "%s: %s", path, strerror(-r)) : CTL_EXIT_OK;
}

CtlExit ctl_print_json(const CtlOptions *options, json_object *value)
{
    int flags = options->json == CTL_JSON_PRETTY ? JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED
                                                 : JSON_C_TO_STRING_PLAIN;

    return print_json(stdout, value, flags) ? CTL_EXIT_OK : ctl_fail_oom();
}

int json_set(json_object *object, const char *key, json_object *value)
{
    if (object && value && json_object_object_add(object, key, value) == 0)
        return 0;
    (void)json_object_put(value);
    return -ENOMEM;
}

int json_append(json_object *array, json_object *value)
{
    if (array && value && json_object_array_add(array, value) == 0)
        return 0;
    (void)json_object_put(value);
    return -ENOMEM;
}

static json_object *add_child(json_object *parent, const char *key, json_object *child)
{
    return (key ? json_set(parent, key, child) : json_append(parent, child)) < 0 ? NULL : child;
}

json_object *json_add_object(json_object *parent, const char *key)
{
    return add_child(parent, key, json_object_new_object());
}

json_object *json_add_array(json_object *parent, const char *key)
{
    return add_child(parent, key, json_object_new_array());
}

int json_set_null(json_object *object, const char *key)
{
    return object && json_object_object_add(object, key, NULL) == 0 ? 0 : -ENOMEM;
}

int json_set_bool(json_object *object, const char *key, bool value)
{
    return json_set(object, key, json_object_new_boolean(value));
}

int json_set_number(json_object *object, const char *key, uint64_t value)
{
    return json_set(object, key, json_object_new_uint64(value));
}

int json_set_set(json_object *object, const char *key, hwloc_const_bitmap_t set)
{
    CLEANUP_FREE char *list = format_list(set, PARSE_CPU_MAX);

    return list ? json_set_text(object, key, list) : -ENOMEM;
}

int json_set_nodes(json_object *object, const char *key, const Topology *topology, hwloc_const_bitmap_t nodes)
{
    CLEANUP_BITMAP hwloc_bitmap_t numbers = hwloc_bitmap_alloc();

    if (!numbers || topology_add_node_numbers(topology, nodes, numbers) < 0)
        return -ENOMEM;
    return json_set_set(object, key, numbers);
}

int json_set_text(json_object *object, const char *key, const char *text)
{
    CLEANUP_FREE char *valid = NULL;

    if (!text)
        return json_set_null(object, key);
    valid = text_utf8(text, strlen(text));
    if (!valid)
        return -ENOMEM;
    return json_set(object, key, json_object_new_string(valid));
}

int json_set_foreign(json_object *object, const char *key, const char *text)
{
    CLEANUP_FREE char *escaped = text ? utf8_escape_alloc(text) : NULL;

    return text && !escaped ? -ENOMEM : json_set_text(object, key, escaped);
}
