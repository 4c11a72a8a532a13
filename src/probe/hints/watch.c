/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "probe/hints/watch.h"

#include "base/lines.h"
#include "base/root.h"
#include "base/util.h"
#include "kernel/procmaps.h"

#include <string.h>

/* Mappings checked. One is enough to tell; a few more, because one may be new. */
#define MAPPINGS_MAX 64U

/* Fewest pages that allow a conclusion. */
#define PAGES_MIN 4U

/* Bits of a pagemap entry. */
#define SOFT_DIRTY (1ULL << 55)
#define PRESENT    (1ULL << 63)

typedef struct Mappings {
    uint64_t first[MAPPINGS_MAX], last[MAPPINGS_MAX]; /* pages */
    size_t n;
} Mappings;

/* Private writable mappings, which hold the data of a program. Not the stack, which execve(2) leaves without the bits
 * of a new mapping. */
static int add_mapping(void *userdata, const char *line)
{
    Mappings *mappings = userdata;
    ProcMaps maps;

    if (procmaps_parse(line, &maps) < 0 || !maps.readable || !maps.writable || maps.executable ||
        maps.shared || strstr(maps.path, "[stack]") || mappings->n >= MAPPINGS_MAX)
        return 0;
    mappings->first[mappings->n] = maps.start;
    mappings->last[mappings->n++] = maps.end - (uint64_t)sysconf(_SC_PAGESIZE);
    return 0;
}

static bool read_entry(int fd, uint64_t address, uint64_t *ret)
{
    uint64_t page = address / (uint64_t)sysconf(_SC_PAGESIZE);

    return pread(fd, ret, sizeof(*ret), (off_t)(page * sizeof(*ret))) == (ssize_t)sizeof(*ret);
}

static bool is_clear(int fd, uint64_t address)
{
    uint64_t entry;

    return read_entry(fd, address, &entry) && !(entry & SOFT_DIRTY);
}

int hint_watch_before(int proc_fd)
{
    CLEANUP_CLOSE int fd = root_open_file(proc_fd, "pagemap");
    Mappings mappings = {0};
    int r;

    if (fd < 0)
        return fd;
    r = lines_read(proc_fd, "maps", add_mapping, &mappings);
    if (r < 0)
        return r;
    for (size_t i = 0; i < mappings.n; i++)
        if (is_clear(fd, mappings.first[i]) || is_clear(fd, mappings.last[i]))
            return 1;
    return 0;
}

int hint_watch_meanwhile(int proc_fd, const uint64_t *written, size_t n)
{
    CLEANUP_CLOSE int fd = root_open_file(proc_fd, "pagemap");
    size_t n_present = 0, n_clear = 0;

    if (fd < 0)
        return fd;
    for (size_t i = 0; i < n; i++) {
        uint64_t entry;

        if (!read_entry(fd, written[i], &entry) || !(entry & PRESENT))
            continue;
        n_present++;
        n_clear += !(entry & SOFT_DIRTY);
    }
    return n_present >= PAGES_MIN && n_clear * 8 >= n_present * 7;
}
