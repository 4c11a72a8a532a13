/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Device and inode identify a piece of memory machine-wide, whatever name each process has for it. */

#include "kernel/shared-maps.h"

#include "base/lines.h"
#include "base/util.h"
#include "kernel/procmaps.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int compare(const SharedObject *a, const SharedObject *b)
{
    if (a->major != b->major)
        return a->major < b->major ? -1 : 1;
    if (a->minor != b->minor)
        return a->minor < b->minor ? -1 : 1;
    return (a->inode > b->inode) - (a->inode < b->inode);
}

int shared_maps_add(SharedMaps *maps, const char *line)
{
    SharedObject object;
    ProcMaps mapping;
    uint32_t at;

    if (procmaps_parse(line, &mapping) < 0)
        return -EINVAL;
    object = (SharedObject){
        .major = mapping.major,
        .minor = mapping.minor,
        .inode = mapping.inode,
        .bytes = mapping.end - mapping.start,
    };
    if (mapping.writable)
        maps->writable_bytes += object.bytes;
    if (!mapping.shared || !shared_maps_is_memory(mapping.path))
        return 0;

    for (at = maps->n; at > 0 && compare(&maps->objects[at - 1], &object) > 0; at--)
        ;
    if (at > 0 && compare(&maps->objects[at - 1], &object) == 0) {
        maps->objects[at - 1].bytes += object.bytes;
        return 0;
    }
    if (at == SHARED_MAPS_MAX)
        return 0;
    maps->n = MIN(maps->n + 1, SHARED_MAPS_MAX);
    memmove(maps->objects + at + 1, maps->objects + at, (maps->n - at - 1) * sizeof(object));
    maps->objects[at] = object;
    return 0;
}

char *shared_maps_format(const SharedMaps *maps, char sign, char buf[static SHARED_MAPS_TEXT_SIZE])
{
    size_t len = 0;

    /* Twice eight hexadecimal digits, twenty decimal ones, three separators, and a sign. */
    static_assert(SHARED_MAPS_MAX * 40 < SHARED_MAPS_TEXT_SIZE, "the text may not fit");

    buf[0] = '\0';
    for (uint32_t i = 0; i < maps->n; i++) {
        const SharedObject *object = &maps->objects[i];
        bool much = object->bytes >= maps->writable_bytes / SHARED_MAPS_MUCH_PART;

        len += (size_t)snprintf(buf + len, SHARED_MAPS_TEXT_SIZE - len,
                                "%s%" PRIx32 ":%" PRIx32 ":%" PRIu64 "%.1s", i ? " " : "", object->major,
                                object->minor, object->inode, much ? &sign : "");
    }
    return buf;
}

static int add_line(void *userdata, const char *line)
{
    return shared_maps_add(userdata, line);
}

int shared_maps_read(int dir_fd, SharedMaps *ret)
{
    return lines_read(dir_fd, "maps", add_line, ret);
}
