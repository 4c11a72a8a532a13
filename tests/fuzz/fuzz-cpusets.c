/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Lines of mountinfo about /dev/cpuset. */

#include "fuzz.h"
#include "kernel/cgroup/cpusets.h"

/* True when the type, which is the field after a separator, is "cgroup". */
static bool is_cgroup(const char *line)
{
    for (const char *p = strstr(line, " - "); p; p = strstr(p + 1, " - "))
        if (strncmp(p + 3 + strspn(p + 3, " "), "cgroup ", strlen("cgroup ")) == 0)
            return true;
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP_FREE char *text = fuzz_text(data, size);

    for (char *line = text; line < text + size; line += strlen(line) + 1) {
        int r;

        line[strcspn(line, "\n")] = '\0';
        r = cpusets_parse_mount(line);
        if (r != -ENOENT && !strstr(line, " /dev/cpuset"))
            abort();
        if (r == 1 && (!is_cgroup(line) || !strstr(line, "noprefix")))
            abort();
    }
    return 0;
}
