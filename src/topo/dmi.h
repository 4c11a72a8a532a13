/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the modules of memory can transfer, as firmware tells (SMBIOS). */

#include <stddef.h>
#include <stdint.h>

/* MB/s of all together, each at its own speed: on a channel with several it is only that of one. 0: it is not told,
 * or of a virtual machine, whose modules are made up. What is cut off is not read. */
uint64_t dmi_memory_mb(const uint8_t *table, size_t size);
