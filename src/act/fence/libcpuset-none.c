/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "act/fence/libcpuset.h"

#include <errno.h>

bool libcpuset_is_built(void)
{
    return false;
}

int libcpuset_begin(int root_fd)
{
    return -ENOSYS;
}

int libcpuset_set(const char *path, hwloc_const_bitmap_t set, bool memory)
{
    return -ENOSYS;
}
