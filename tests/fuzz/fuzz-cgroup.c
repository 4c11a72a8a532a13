/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "fuzz.h"
#include "probe/tasks/cgroup.h"

/* Paths begin with a slash. Unit names fit their field, have no slash, and end as unit names do. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP_FREE char *text = fuzz_text(data, size);
    CgroupPaths paths;
    CgroupUnit unit;

    cgroup_unit(text, &unit);
    if (cgroup_parse(text, &paths) == 0) {
        if (paths.main[0] != '/' || paths.cpuset[0] != '/' || strchr(paths.main, '\n'))
            abort();
        cgroup_unit(paths.main, &unit);
    }
    if (strnlen(unit.unit, sizeof(unit.unit)) == sizeof(unit.unit) || strchr(unit.unit, '/') ||
        (*unit.unit && !strchr(unit.unit, '.')))
        abort();
    if (strnlen(unit.slice, sizeof(unit.slice)) == sizeof(unit.slice) || strchr(unit.slice, '/') ||
        (*unit.slice && strcmp(strrchr(unit.slice, '.'), ".slice") != 0))
        abort();
    return 0;
}
