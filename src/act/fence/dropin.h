/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The files in which systemd keeps properties that were set for this boot (systemctl set-property --runtime). */

#include <hwloc/bitmap.h>

/* Which CPUs or nodes a unit has by one of them; `property` is AllowedCPUs or AllowedMemoryNodes. 0, -ENOENT when
 * there is none, or -errno. */
int fence_dropin_read(int root_fd, const char *unit, const char *property, hwloc_bitmap_t ret);

/* The text of such a file, which is cut up. As above; -EINVAL when it is not a list of numbers. */
int fence_dropin_parse(char *text, const char *property, hwloc_bitmap_t ret);

/* Removes it, and its directory if nothing else is in that. The manager goes on with what it was told, and says that
 * the unit's files have changed until it is reloaded; then what the unit file says is in force. */
void fence_dropin_remove(int root_fd, const char *unit, const char *property);
