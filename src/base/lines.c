/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/lines.h"

#include "base/root.h"
#include "base/util.h"

#include <string.h>

/* Longer than any line: a path of PATH_MAX, each byte escaped to four, and a word for each of 1024 nodes. */
#define PIECE_SIZE ((size_t)65536)

/* Passes the complete lines at the start of `text` to `add`, splitting `text` in place. *ret_used is their
 * total length. */
static int add_lines(char *text, size_t len, LinesAdd add, void *userdata, size_t *ret_used)
{
    char *line = text, *end;

    while ((end = memchr(line, '\n', len - (size_t)(line - text)))) {
        int r;

        *end = '\0';
        r = add(userdata, line);
        if (r < 0)
            return r;
        line = end + 1;
    }
    *ret_used = (size_t)(line - text);
    return 0;
}

static int read_pieces(int fd, char *text, LinesAdd add, void *userdata)
{
    size_t len = 0, used = 0;
    bool any = false;

    for (;;) {
        ssize_t n = TEMP_FAILURE_RETRY(read(fd, text + len, PIECE_SIZE - len));
        int r;

        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        any = true;
        len += (size_t)n;
        r = add_lines(text, len, add, userdata, &used);
        if (r < 0)
            return r;
        len -= used;
        memmove(text, text + used, len);
        if (len == PIECE_SIZE)
            return -EINVAL;
    }
    if (!any)
        return -ESRCH;
    return len == 0 ? 0 : -EINVAL;
}

int lines_read(int dir_fd, const char *file, LinesAdd add, void *userdata)
{
    CLEANUP_CLOSE int fd = root_open_file(dir_fd, file);
    CLEANUP_FREE char *text = NULL;

    if (fd < 0)
        return fd;
    text = malloc(PIECE_SIZE);
    return text ? read_pieces(fd, text, add, userdata) : -ENOMEM;
}
