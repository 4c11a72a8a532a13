/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The drop-ins in which systemd keeps properties set for this boot (systemctl set-property --runtime). */

#include <hwloc/bitmap.h>

/* What a drop-in gives a unit; `property` is AllowedCPUs or AllowedMemoryNodes. 0, -ENOENT if there is none,
 * or -errno. */
int fence_dropin_read(int root_fd, const char *unit, const char *property, hwloc_bitmap_t ret);

/* Parses its text, which is cut up. As above; -EINVAL if the value is no list of numbers. */
int fence_dropin_parse(char *text, const char *property, hwloc_bitmap_t ret);

/* Removes it, and its directory if empty. The manager keeps the setting and reports changed unit files until
 * it is reloaded; then the unit file is in force. */
void fence_dropin_remove(int root_fd, const char *unit, const char *property);
