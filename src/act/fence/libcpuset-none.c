/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "act/fence/libcpuset.h"

bool libcpuset_is_built(void)
{
    return false;
}

int libcpuset_begin(int root_fd)
{
    return -ENOSYS;
}

int libcpuset_set_cpus(void *context, const char *path, hwloc_const_bitmap_t cpus)
{
    return -ENOSYS;
}

int libcpuset_set_memory(void *context, const char *path, hwloc_const_bitmap_t nodes)
{
    return -ENOSYS;
}
