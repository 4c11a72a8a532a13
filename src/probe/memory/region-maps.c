/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The two texts are read one after the other, and mappings may change in between. A line of numa_maps counts
 * only for a region that begins at its address; the next reading tells the rest.
 *
 * A file of a tmpfs other than /dev/shm counts as a file: nothing in these texts tells it from one on a disk. */

#include "probe/memory/region-maps.h"

#include "base/lines.h"
#include "base/util.h"
#include "kernel/procmaps.h"
#include "kernel/shared-maps.h"
#include "probe/memory/numa-maps.h"

#include <string.h>
#include <sys/sysmacros.h>

static RegionKind kind_of_file(const ProcMaps *mapping)
{
    if (has_prefix(mapping->path, "/anon_hugepage") || has_prefix(mapping->path, "/dev/hugepages/"))
        return REGION_KIND_HUGETLB;
    if (shared_maps_is_memory(mapping->path))
        return REGION_KIND_SHMEM;
    return has_prefix(mapping->path, "/dev/") ? REGION_KIND_DEVICE : REGION_KIND_FILE;
}

/* Other names in brackets are pages of the kernel itself, such as [vdso]. So are mappings with an inode and
 * no path, such as anon_inode:[io_uring]. */
static RegionKind kind_of(const ProcMaps *mapping)
{
    const char *path = mapping->path;

    if (*path == '/')
        return kind_of_file(mapping);
    if (has_prefix(path, "[anon_shmem:"))
        return REGION_KIND_SHMEM;
    if (mapping->inode == 0 && (*path == '\0' || strcmp(path, "[heap]") == 0 || has_prefix(path, "[stack") ||
                                has_prefix(path, "[anon:")))
        return REGION_KIND_ANON;
    return REGION_KIND_DEVICE;
}

int region_maps_add(MemoryRegions *regions, const char *line)
{
    ProcMaps mapping;
    MemoryRegion region;

    if (procmaps_parse(line, &mapping) < 0)
        return -EINVAL;
    region = (MemoryRegion){
        .start = mapping.start,
        .end = mapping.end,
        .device = makedev(mapping.major, mapping.minor),
        .inode = mapping.inode,
        .kind = kind_of(&mapping),
        .readable = mapping.readable,
        .writable = mapping.writable,
        .executable = mapping.executable,
        .shared = mapping.shared,
        .resident_bytes = REGION_RESIDENT_UNKNOWN,
    };
    return regions_add(regions, &region);
}

int region_maps_describe(MemoryRegions *regions, const char *line)
{
    MemoryRegion *region;
    NumaMapsLine said;
    int r = numa_maps_parse(line, &said);

    if (r < 0)
        return r;
    region = regions_find(regions, said.address);
    if (!region || region->start != said.address)
        return 1;
    region->bound = said.bound;
    /* Pages without a file that show in both texts, such as those of a device, are not counted in numa_maps. */
    region->resident_bytes = MIN(said.pages * said.page_bytes, region->end - region->start);
    if (said.huge)
        region->kind = REGION_KIND_HUGETLB;
    return 0;
}

static int add_line(void *userdata, const char *line)
{
    return region_maps_add(userdata, line);
}

static int describe_line(void *userdata, const char *line)
{
    int r = region_maps_describe(userdata, line);

    return MIN(r, 0);
}

int region_maps_read(int dir_fd, bool described, const MemoryRegions *before, MemoryRegions *ret)
{
    MemoryRegions regions = {0};
    int r = lines_read(dir_fd, "maps", add_line, &regions);

    if (r == 0 && described)
        r = lines_read(dir_fd, "numa_maps", describe_line, &regions);
    if (r == -ENOENT && regions.n > 0)
        r = 0;
    if (r < 0) {
        regions_done(&regions);
        return r;
    }
    if (before)
        regions_inherit(&regions, before);
    *ret = regions;
    return 0;
}
