/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The drop-ins in which systemd keeps properties set for this boot (systemctl set-property --runtime). */

#include <hwloc/bitmap.h>

/* The CPUs or nodes that a drop-in gives a unit; `property` is AllowedCPUs or AllowedMemoryNodes. 0, -ENOENT
 * if there is none, or -errno. */
int fence_dropin_read(int root_fd, const char *unit, const char *property, hwloc_bitmap_t ret);

/* Parses the text of a drop-in, which is modified. Returns as above; -EINVAL if the value is not a list of
 * numbers. */
int fence_dropin_parse(char *text, const char *property, hwloc_bitmap_t ret);

/* Removes the drop-in, and its directory if that is then empty. The manager keeps the setting, and reports
 * that the unit's files have changed, until it is reloaded; then the unit file is in force. */
void fence_dropin_remove(int root_fd, const char *unit, const char *property);
