/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A pressure file has one or two lines, "some avg10=0.00 avg60=2.26 avg300=2.09 total=12006809" and the same
 * with "full". The system-wide CPU file has had a "full" line, which is always zero, since Linux 5.13. */

#include "kernel/psi.h"

#include "base/root.h"
#include "base/scan.h"
#include "base/util.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

/* "12.34" percent as permille, rounded down. */
static bool scan_average(const char **p, const char *key, uint32_t *ret)
{
    uint64_t whole;

    if (!scan_word(p, key) || !scan_u64(p, &whole) || whole > 100 || (*p)[0] != '.' || (*p)[1] < '0' ||
        (*p)[1] > '9' || (*p)[2] < '0' || (*p)[2] > '9')
        return false;
    *ret = (uint32_t)whole * 10 + (uint32_t)((*p)[1] - '0');
    *p += 3;
    return true;
}

static bool scan_line(const char **p, const char *word, PsiLine *ret)
{
    PsiLine line;

    if (!scan_word(p, word) || !scan_average(p, " avg10=", &line.avg10_permille) ||
        !scan_average(p, " avg60=", &line.avg60_permille) ||
        !scan_average(p, " avg300=", &line.avg300_permille) || !scan_word(p, " total=") ||
        !scan_u64(p, &line.total_usec) || **p != '\n')
        return false;
    (*p)++;
    *ret = line;
    return true;
}

int psi_parse(const char *text, Psi *ret)
{
    Psi psi = {0};

    if (!scan_line(&text, "some", &psi.some))
        return -EINVAL;
    psi.has_full = scan_line(&text, "full", &psi.full);
    if (*text)
        return -EINVAL;
    *ret = psi;
    return 0;
}

int psi_read(int root_fd, const char *path, Psi *ret)
{
    char text[PSI_TEXT_SIZE];
    ssize_t n = root_read(root_fd, path, text, sizeof(text));

    return n < 0 ? (int)n : psi_parse(text, ret);
}

int psi_trigger(int root_fd, const char *path, uint64_t stall_usec, uint64_t window_usec)
{
    CLEANUP_CLOSE int fd = -1;
    char text[64];
    int len;

    while (*path == '/')
        path++;
    fd = openat(root_fd, path, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return -errno;

    len = snprintf(text, sizeof(text), "some %" PRIu64 " %" PRIu64, stall_usec, window_usec);
    /* The kernel overwrites the last byte it gets, so the terminating NUL is written too. */
    if (write(fd, text, (size_t)len + 1) < 0)
        return -errno;
    return TAKE_FD(fd);
}
