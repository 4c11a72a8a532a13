/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Lines of mountinfo about /dev/cpuset. */

#include "kernel/cgroup/cpusets.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whether the type, which is the field behind a separator, is this one. */
static bool is_cgroup(const char *line)
{
    for (const char *p = strstr(line, " - "); p; p = strstr(p + 1, " - "))
        if (strncmp(p + 3 + strspn(p + 3, " "), "cgroup ", strlen("cgroup ")) == 0)
            return true;
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    for (char *line = text; line < text + size; line += strlen(line) + 1) {
        int r;

        line[strcspn(line, "\n")] = '\0';
        r = cpusets_parse_mount(line);
        if (r != -ENOENT && !strstr(line, " /dev/cpuset"))
            abort();
        if (r == 1 && (!is_cgroup(line) || !strstr(line, "noprefix")))
            abort();
    }
    free(text);
    return 0;
}
