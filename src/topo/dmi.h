/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the modules of memory can transfer, as firmware tells (SMBIOS). */

#include <stddef.h>
#include <stdint.h>

/* MB/s of all together, each at its own speed; where several are on a channel they have that of one, so that is too
 * much. 0: it is not told of all of them, or the table is cut off or of a virtual machine, whose modules are made
 * up. */
uint64_t dmi_memory_mb(const uint8_t *table, size_t size);
