/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/namespace.h"

#include "base/parse.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Of the namespace that the kernel begins with (PROC_PID_INIT_INO in include/linux/proc_ns.h). */
#define FIRST_NAMESPACE 4026531836U

/* 0: not known, as in a tree of files that somebody made up. */
static uint32_t read_namespace(int root_fd)
{
    char text[32];
    ssize_t n = readlinkat(root_fd, "proc/self/ns/pid", text, sizeof(text) - 1);
    uint32_t number = 0;

    if (n <= 0)
        return 0;
    text[n] = '\0';
    return sscanf(text, "pid:[%u]", &number) == 1 ? number : 0;
}

void namespace_journal_name(int root_fd, char ret[static JOURNAL_NAME_SIZE])
{
    uint32_t number = read_namespace(root_fd);

    if (number == 0 || number == FIRST_NAMESPACE)
        (void)snprintf(ret, JOURNAL_NAME_SIZE, "journal");
    else
        (void)snprintf(ret, JOURNAL_NAME_SIZE, "journal-%u", number);
}

bool namespace_is_journal_name(const char *name)
{
    uint32_t number;

    return strcmp(name, "journal") == 0 || (strncmp(name, "journal-", strlen("journal-")) == 0 &&
                                            parse_u32(name + strlen("journal-"), &number) == 0);
}

bool namespace_has_own_proc(int root_fd)
{
    char text[16];
    ssize_t n = readlinkat(root_fd, "proc/self", text, sizeof(text) - 1);
    int32_t pid;

    if (n <= 0)
        return false;
    text[n] = '\0';
    return parse_i32(text, &pid) == 0 && pid == getpid();
}
